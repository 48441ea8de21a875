// How large a table is, kept so that asking costs nothing: the engine is asked anew when much has
// changed since, or when the answer is old.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"
#include "tables/query_cache.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <vector>

namespace shale_sql {

struct TableSize {
  uint64_t rows = 0;
  uint64_t committed = 0;    // of these, about
  uint64_t data_bytes = 0;   // on disk, of the primary tree
  uint64_t index_bytes = 0;  // on disk, of the others
};

class TableCounts {
 public:
  // A statement has written a row: `rows` is 1 for a new one, -1 for one that went, else 0.
  void changed(int rows, time_t when) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    if (rows != 0) {
      rows_.fetch_add(rows, std::memory_order_relaxed);
      moves_.fetch_add(1, std::memory_order_relaxed);
    }
    if (changed_at() != when) changed_at_.store(when, std::memory_order_relaxed);
  }
  // The first tree is the primary one. `renew`: as of now, whatever is kept. Rows of transactions
  // under way are counted as if they were committed.
  Error get(const std::vector<TreeHandle> &trees, const Changes &changes, bool renew,
            TableSize *size);
  // About how many rows there are; of a table with some thousand of them just how many, those of
  // transactions under way included.
  Error rows(const std::vector<TreeHandle> &trees, const Changes &changes, uint64_t *rows);
  // How many rows have been written since the table was opened.
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  // When a row was last written since the table was opened; 0: not since.
  time_t changed_at() const { return changed_at_.load(std::memory_order_relaxed); }

 private:
  bool is_old(uint64_t changes, uint64_t moves, uint64_t now) const;

  std::atomic<int64_t> rows_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> moves_{0};  // rows that came or went
  std::atomic<time_t> changed_at_{0};

  // Who only asks writes on another cache line than who writes rows.
  char apart_[64] = {};
  std::mutex lock_;
  bool known_ = false;
  TableSize size_;
  int64_t rows_then_ = 0;
  uint64_t changes_then_ = 0;
  uint64_t moves_then_ = 0;
  uint64_t recounts_then_ = 0;
  uint64_t nanos_then_ = 0;

  // What `rows` last told of a small table, and when.
  bool counted_ = false;
  uint64_t counted_rows_ = 0;
  uint64_t counted_at_ = 0;  // the number of the table's changes; 0: while somebody wrote
  int64_t counted_written_ = 0;
  uint64_t counted_nanos_ = 0;
};

}  // namespace shale_sql
