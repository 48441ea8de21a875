// Numbers of a table's changes, and the tokens under which the server keeps results.

#include "tables/query_cache.h"

#include "engine/engine.h"

namespace shale_sql {

uint64_t KeptResults::token_of(const std::shared_ptr<Changes> &table, uint64_t number) {
  std::lock_guard<std::mutex> lock(lock_);
  if (table->token_ != 0 && table->token_of_ == number) return table->token_;
  tables_.erase(table->token_);
  table->token_ = ++last_token_;
  table->token_of_ = number;
  tables_[table->token_] = table.get();
  return table->token_;
}

KeptResults::Answer KeptResults::look(uint64_t token) {
  std::lock_guard<std::mutex> lock(lock_);
  auto found = tables_.find(token);
  if (found == tables_.end()) return Answer::kStale;
  uint64_t number = found->second->quiet_number();
  if (number == 0) return Answer::kBeingWritten;
  return number == found->second->token_of_ ? Answer::kGood : Answer::kStale;
}

void KeptResults::forget(const Changes &table) {
  std::lock_guard<std::mutex> lock(lock_);
  tables_.erase(table.token_);
}

// The server may let go of a table last of all, as it ends.
Changes::~Changes() {
  if (engine_is_started()) engine().kept_results.forget(*this);
}

void Changes::end(int64_t rows, End how) {
  if (how == End::kUndone) undone_.fetch_add(rows, std::memory_order_relaxed);
  if (how == End::kPartlyKept) recounts_.fetch_add(1, std::memory_order_relaxed);
  if (rows != 0) rows_.fetch_sub(rows, std::memory_order_relaxed);
  number_.fetch_add(1);
  writers_.fetch_sub(1);
}

// In this order: who ends between the first look and the last leaves another number. Both parts of
// it only grow.
uint64_t Changes::quiet_number() const {
  const KeptResults &kept = engine().kept_results;
  if (writers_.load() != 0 || kept.deciding_.load() != 0) return 0;
  return number_.load() + kept.number_of_all_.load();
}

ChangesOfAnyTable::ChangesOfAnyTable() { engine().kept_results.deciding_.fetch_add(1); }

ChangesOfAnyTable::~ChangesOfAnyTable() {
  KeptResults &kept = engine().kept_results;
  kept.number_of_all_.fetch_add(1);
  kept.deciding_.fetch_sub(1);
}

}  // namespace shale_sql
