// How many rows are read ahead, and which are.

#include "handler/ahead.h"

#include <algorithm>

namespace shale_sql {

// How many times as many rows are read in each turn.
constexpr size_t kGrowth = 4;

void Ahead::clear() {
  most = next = 0;
  ended = 0;
  key.clear();
  rows.clear();
}

void Ahead::grow() {
  size_t bytes = 0;
  for (const RowAhead &row : rows) bytes += row.bytes.size();
  size_t fit = bytes == 0 ? kMostAhead : std::max<size_t>(1, kMostBytesAhead * rows.size() / bytes);
  most = std::min({most * kGrowth, kMostAhead, fit});
}

}  // namespace shale_sql
