// What a handler knows of a load of many rows (ha_load).
#pragma once

#include "load/loader.h"
#include "words/word_buffer.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace shale_sql {

struct Load {
  std::unique_ptr<TableLoader> copy;  // of all rows, past the log
  // Rows are committed some megabytes at a time: of a copy that nobody sees yet, or of a load.
  enum class Parts { kNone, kOfCopy, kOfLoad };
  Parts in_parts = Parts::kNone;
  size_t part_bytes = 0;  // since the last of it
  // Entries of words that a statement writes when it has inserted its rows, by place of the index;
  // none: they are written with their rows.
  std::vector<WordBuffer> words;
};

}  // namespace shale_sql
