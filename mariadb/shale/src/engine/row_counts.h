// How many rows statements have written since the start.
#pragma once

#include <cstdint>

namespace shale_sql {

struct RowCounts {
  uint64_t inserted, updated, deleted;
};

void count_rows(unsigned long inserted, unsigned long updated, unsigned long deleted);
RowCounts counted_rows();

}  // namespace shale_sql
