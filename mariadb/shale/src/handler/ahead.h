// Rows that a scan has read before they were asked for.
#pragma once

#include "server.h"

#include "engine/handles.h"

#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

constexpr size_t kMostAhead = 128;
// And at first of a statement that does not say how many it wants.
constexpr size_t kWithoutLimit = 16;
// What the rows of one turn may take, if they are like those of the turn before.
constexpr size_t kMostBytesAhead = 1 << 20;

struct RowAhead {
  range_id_t range;  // that it is of, in a read of several ranges
  std::string key;   // of the entry
  std::string primary;
  BytesHandle value;
  std::string_view bytes;  // of the value
  bool is_point = false;   // of a unique index: the entry has not been read yet
};

struct Ahead {
  size_t most = 0;  // how many rows are read next; 0: the scan does not read ahead
  size_t next = 0;  // of those read
  int ended = 0;    // what comes after them: an error, or the end
  std::string key;  // of the entry last shown
  std::vector<RowAhead> rows;
  void clear();
  // How many rows are read in the next turn.
  void grow();
};

// Of a read of several ranges.
struct Ranges {
  bool together = false;   // their rows are read together
  bool in_range = false;   // the cursor is in one of them
  bool streaming = false;  // which is of the primary key: rows come straight from the cursor
  bool at_point = false;   // the row that was shown last is of one key of a unique index
  range_id_t *asked = nullptr;  // where the range of the next row goes, while it is asked for
};

}  // namespace shale_sql
