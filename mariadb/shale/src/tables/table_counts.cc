// When the engine is asked anew how large a table is.

#include "tables/table_counts.h"

#include "server.h"

#include "engine/errors.h"

#include <algorithm>

namespace shale_sql {

namespace {

// Up to so many rows are counted instead of estimated.
constexpr uint64_t kCounted = 100;
// Up to so many are counted for ranks, after each change: a part of a millisecond.
constexpr uint64_t kCountedForRanks = 4096;
// A part of the rows that may come, go or change before the engine is asked again; and how many may
// change at least: a small table that is updated all the time has many old versions, and to count
// its rows takes long.
constexpr uint64_t kChangedPart = 16;
constexpr uint64_t kChangesMin = 64;
constexpr uint64_t kSecond = 1000 * 1000 * 1000;
// How old the answer may be if rows have changed, and if none has: compaction changes sizes too.
constexpr uint64_t kOldNanos = 10 * kSecond;
constexpr uint64_t kOldUnchangedNanos = 60 * kSecond;

Error bytes_of(const TreeHandle &tree, uint64_t *bytes) {
  return consume_error(
      shale_tree_estimate(tree.get(), nullptr, 0, nullptr, 0, 0, nullptr, nullptr, bytes));
}

Error ask(const std::vector<TreeHandle> &trees, TableSize *size) {
  shale_error *error = shale_tree_estimate(trees[0].get(), nullptr, 0, nullptr, 0, kCounted,
                                           &size->rows, nullptr, &size->data_bytes);
  if (error != nullptr) return consume_error(error);
  size->index_bytes = 0;
  for (size_t place = 1; place < trees.size(); place++) {
    uint64_t bytes = 0;
    if (Error error = bytes_of(trees[place], &bytes)) return error;
    size->index_bytes += bytes;
  }
  return 0;
}

}  // namespace

bool TableCounts::is_old(uint64_t changes, uint64_t moves, uint64_t now) const {
  if (!known_) return true;
  // Others may have asked since this one has looked at the clock.
  uint64_t since = std::max(now, nanos_then_) - nanos_then_;
  if (changes == changes_then_) return since > kOldUnchangedNanos;
  const uint64_t part = size_.rows / kChangedPart;
  // What came and went is added, and what was rolled back is taken off again.
  const uint64_t most = std::max(part, kChangesMin);
  return moves - moves_then_ > most || changes - changes_then_ > most || since > kOldNanos;
}

Error TableCounts::get(const std::vector<TreeHandle> &trees, const Changes &writers, bool renew,
                       TableSize *size) {
  const uint64_t now = my_interval_timer();
  std::lock_guard<std::mutex> one_at_a_time(lock_);
  int64_t rows = rows_.load(std::memory_order_relaxed) - writers.rows_undone();
  uint64_t changes = changes_.load(std::memory_order_relaxed);
  uint64_t moves = moves_.load(std::memory_order_relaxed);
  const uint64_t recounts = writers.recounts();
  if (renew || recounts != recounts_then_ || is_old(changes, moves, now)) {
    TableSize found;
    if (Error error = ask(trees, &found)) return error;
    size_ = found;
    // The tree's count has committed rows only.
    rows_then_ = rows - writers.rows_under_way();
    changes_then_ = changes;
    moves_then_ = moves;
    recounts_then_ = recounts;
    nanos_then_ = now;
    known_ = true;
  }
  *size = size_;
  int64_t now_rows = static_cast<int64_t>(size_.rows) + (rows - rows_then_);
  size->rows = now_rows < 0 ? 0 : static_cast<uint64_t>(now_rows);
  const int64_t committed = now_rows - writers.rows_under_way();
  size->committed = committed < 0 ? 0 : static_cast<uint64_t>(committed);
  return 0;
}

Error TableCounts::rows(const std::vector<TreeHandle> &trees, const Changes &changes,
                        uint64_t *rows) {
  TableSize size;
  if (Error error = get(trees, changes, false, &size)) return error;
  *rows = size.rows;
  // An estimate may be off by half.
  if (size.rows > 2 * kCountedForRanks) return 0;
  std::lock_guard<std::mutex> one_at_a_time(lock_);
  // Rows are seen by a count when their transaction has ended. Those of one that is under way are
  // added as they come; what it takes back goes with its end.
  const uint64_t quiet = changes.quiet_number(), now = my_interval_timer();
  const int64_t written = rows_.load(std::memory_order_relaxed);
  const bool is_old = quiet != 0 ? quiet != counted_at_ : now - counted_nanos_ > kOldNanos;
  if (!counted_ || is_old) {
    Error error = consume_error(shale_tree_estimate(trees[0].get(), nullptr, 0, nullptr, 0,
                                                    kCountedForRanks, &counted_rows_, nullptr,
                                                    nullptr));
    if (error) return error;
    counted_ = true;
    counted_at_ = quiet;
    counted_written_ = written;
    counted_nanos_ = now;
  }
  const int64_t all = static_cast<int64_t>(counted_rows_) + (written - counted_written_);
  *rows = static_cast<uint64_t>(std::max<int64_t>(all, 0));
  return 0;
}

}  // namespace shale_sql
