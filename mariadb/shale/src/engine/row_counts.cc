// Counters of rows, of all threads together.

#include "engine/row_counts.h"

#include <atomic>

namespace shale_sql {

namespace {

std::atomic<uint64_t> rows_inserted{0}, rows_updated{0}, rows_deleted{0};

}  // namespace

void count_rows(unsigned long inserted, unsigned long updated, unsigned long deleted) {
  if (inserted != 0) rows_inserted.fetch_add(inserted, std::memory_order_relaxed);
  if (updated != 0) rows_updated.fetch_add(updated, std::memory_order_relaxed);
  if (deleted != 0) rows_deleted.fetch_add(deleted, std::memory_order_relaxed);
}

RowCounts counted_rows() {
  return {rows_inserted.load(), rows_updated.load(), rows_deleted.load()};
}

}  // namespace shale_sql
