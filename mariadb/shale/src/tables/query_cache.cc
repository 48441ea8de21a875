// Numbers of a table's changes, and the tokens under which the server keeps results.

#include "tables/query_cache.h"

#include <algorithm>

namespace shale_sql {

namespace {

// Numbers and tokens, never given twice.
std::atomic<uint64_t> last_number{0};
// Every table's number is this one at least.
std::atomic<uint64_t> least_number{0};
std::atomic<uint64_t> deciding{0};

}  // namespace

KeptResults kept_results;

uint64_t KeptResults::token_of(const std::shared_ptr<Changes> &table, uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (table->token_ != 0 && table->token_of_ == number) return table->token_;
  tables_.erase(table->token_);
  table->token_ = ++last_number;
  table->token_of_ = number;
  tables_[table->token_] = table.get();
  return table->token_;
}

KeptResults::Answer KeptResults::look(uint64_t token) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = tables_.find(token);
  if (found == tables_.end()) return Answer::kStale;
  uint64_t number = found->second->settled();
  if (number == 0) return Answer::kBeingWritten;
  return number == found->second->token_of_ ? Answer::kGood : Answer::kStale;
}

void KeptResults::forget(const Changes &table) {
  std::lock_guard<std::mutex> lock(mutex_);
  tables_.erase(table.token_);
}

Changes::Changes() : number_(++last_number) {}

Changes::~Changes() { kept_results.forget(*this); }

void Changes::end() {
  number_.store(++last_number);
  writers_.fetch_sub(1);
}

// In this order: who ends between the first look and the last leaves another number.
uint64_t Changes::settled() const {
  if (writers_.load() != 0 || deciding.load() != 0) return 0;
  return std::max(number_.load(), least_number.load());
}

ChangesOfAnyTable::ChangesOfAnyTable() { deciding.fetch_add(1); }

ChangesOfAnyTable::~ChangesOfAnyTable() {
  least_number.store(++last_number);
  deciding.fetch_sub(1);
}

}  // namespace shale_sql
