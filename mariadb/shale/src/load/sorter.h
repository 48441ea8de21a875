// Sorts the entries of an index that is built, in bounded memory: runs in temporary files, then one
// merge. Entries of one key come in the order in which they were added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

class SortRun;

class Sorter {
 public:
  // Files are made in `folder` and have no name; `memory_bytes` bounds what is held at a time (one
  // entry more, if it is larger).
  Sorter(std::string folder, size_t memory_bytes);
  ~Sorter();

  // False: a file could not be written; `error` says which and why.
  bool add(std::string_view key, std::string_view value);
  // Ends adding; from here on entries come out by `next`.
  bool finish();
  // The next entry by key, valid until the call after; of entries of one key all come, in the order
  // of being added. False at the end, or if `error` is not empty.
  bool next(std::string_view *key, std::string_view *value);
  const std::string &error() const { return error_; }
  // Bytes that have been written to temporary files.
  uint64_t spilled_bytes() const { return spilled_bytes_; }

 private:
  // An entry in `arena_`: the key's first bytes, so that most are compared without it.
  struct Entry {
    uint64_t head;
    size_t offset;
    uint32_t key_bytes;
    uint32_t value_bytes;
  };

  bool before(const Entry &a, const Entry &b) const;
  void sort_entries();
  bool spill();
  bool merge(size_t first, size_t count, SortRun *to);
  bool fail(const char *what, int error_number);
  void sift(size_t at);
  bool run_before(size_t a, size_t b) const;
  bool start_merge(size_t first, size_t count);

  std::string folder_;
  size_t memory_bytes_;
  std::string error_;
  uint64_t spilled_bytes_ = 0;
  std::vector<char> arena_;
  std::vector<Entry> entries_;
  size_t next_entry_ = 0;
  std::vector<std::unique_ptr<SortRun>> runs_;  // the oldest entries first
  std::vector<size_t> heap_;                    // runs that have an entry, the first on top
  bool popped_ = false;  // the entry on top has been given out
};

}  // namespace shale_sql
