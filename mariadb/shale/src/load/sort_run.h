// A run of the sorter: entries in order, in a temporary file without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shale_sql {

class SortRun {
 public:
  SortRun() = default;
  ~SortRun();
  SortRun(const SortRun &) = delete;
  SortRun &operator=(const SortRun &) = delete;

  // All of these: false if the file could not be made, written or read; `failed` says what failed,
  // `error_number` why (0: the file has other bytes than were written).
  bool create(const std::string &folder);
  // Sets up a buffer for writing, then for reading, the file.
  bool write(std::string_view key, std::string_view value, size_t buffer_bytes);
  bool end_writing();
  void start_reading(size_t buffer_bytes);
  // The next entry, valid until the call after; `at_end` if there is none.
  bool read();

  bool at_end() const { return at_end_; }
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }
  uint64_t bytes() const { return written_; }
  const char *failed() const { return failed_; }
  int error_number() const { return error_number_; }

 private:
  bool fail(const char *what, int error_number);
  bool flush();
  bool fill(size_t wanted);

  int file_ = -1;
  std::unique_ptr<char[]> buffer_;
  size_t size_ = 0;      // of the buffer
  size_t used_ = 0;      // bytes in the buffer
  size_t at_ = 0;        // of which have been read
  uint64_t written_ = 0;
  uint64_t read_ = 0;    // bytes of the file that are or were in the buffer
  bool at_end_ = false;
  std::string_view key_, value_;
  const char *failed_ = "";
  int error_number_ = 0;
};

}  // namespace shale_sql
