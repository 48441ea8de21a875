// How many rows statements have written since the start.
#pragma once

#include <atomic>
#include <cstdint>

namespace shale_sql {

// Of all threads together.
class RowCounts {
 public:
  void add(unsigned long inserted, unsigned long updated, unsigned long deleted) {
    if (inserted != 0) inserted_.fetch_add(inserted, std::memory_order_relaxed);
    if (updated != 0) updated_.fetch_add(updated, std::memory_order_relaxed);
    if (deleted != 0) deleted_.fetch_add(deleted, std::memory_order_relaxed);
  }
  uint64_t inserted() const { return inserted_.load(); }
  uint64_t updated() const { return updated_.load(); }
  uint64_t deleted() const { return deleted_.load(); }

 private:
  std::atomic<uint64_t> inserted_{0}, updated_{0}, deleted_{0};
};

}  // namespace shale_sql
