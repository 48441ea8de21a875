// Sorts entries of an index that is built, in bounded memory: runs in temporary files, then one merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shale_sql {

class Sorter {
 public:
  // Files are made in `folder` and have no name; `memory_bytes` bounds what is held at a time.
  Sorter(std::string folder, size_t memory_bytes);
  ~Sorter();

  // False: a file could not be written; `error` says which and why.
  bool add(std::string_view key, std::string_view value);
  // Ends adding; from here on entries come out by `next`.
  bool finish();
  // The next entry by key, valid until the call after; of entries of one key all come, in the order of being added.
  // False at the end, or if `error` is not empty.
  bool next(std::string_view *key, std::string_view *value);
  const std::string &error() const;
};

}  // namespace shale_sql
