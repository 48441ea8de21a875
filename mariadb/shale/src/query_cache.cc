// The query cache. The server removes a table's results at the end of each statement that writes to
// it, not at the commit, and asks the engine twice: whether the result of a statement may be kept,
// and whether a kept one may be given out. Both is so for statements that are a transaction of
// their own, while no transaction is under way that has written to the table. So the first reads no
// snapshot of before it asked; and with the number of then unchanged the second would read the
// same.
//
// A statement within a transaction neither keeps nor is given results: it would have to be known
// what its snapshot shows.

#include "query_cache.h"

#include "ha_shale.h"
#include "trx.h"

#include <map>
#include <mutex>

namespace shale_sql {

namespace {

// Numbers and tokens, never given twice.
std::atomic<uint64_t> last_number{0};
// Every table's number is this one at least.
std::atomic<uint64_t> least_number{0};
std::atomic<uint64_t> deciding{0};

}  // namespace

// The tokens under which the server keeps results. Tables are not kept open by it.
class KeptResults {
 public:
  uint64_t token_of(const std::shared_ptr<Changes> &table, uint64_t number) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (table->token_ != 0 && table->token_of_ == number) return table->token_;
    tables_.erase(table->token_);
    table->token_ = ++last_number;
    table->token_of_ = number;
    tables_[table->token_] = table.get();
    return table->token_;
  }

  enum class Answer { kGood, kBeingWritten, kStale };

  Answer look(uint64_t token) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = tables_.find(token);
    if (found == tables_.end()) return Answer::kStale;
    uint64_t number = found->second->settled();
    if (number == 0) return Answer::kBeingWritten;
    return number == found->second->token_of_ ? Answer::kGood : Answer::kStale;
  }

  void forget(const Changes &table) {
    std::lock_guard<std::mutex> lock(mutex_);
    tables_.erase(table.token_);
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, const Changes *> tables_;
};

namespace {

KeptResults kept_results;

// Whether a statement sees what is committed when it begins to read, and nothing of its own.
bool stands_alone(THD *thd) {
  Trx *trx = Trx::find(thd);
  return !in_transaction(thd) && (trx == nullptr || !trx->begun());
}

my_bool may_give_out(THD *thd, const char *, uint, ulonglong *token) {
  if (!stands_alone(thd)) return false;
  switch (kept_results.look(*token)) {
    case KeptResults::Answer::kGood:
      return true;
    case KeptResults::Answer::kBeingWritten:
      return false;
    default:
      // Another number than it was kept with: the server removes the table's results.
      *token = 0;
      return false;
  }
}

}  // namespace

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

using namespace shale_sql;

my_bool ha_shale::register_query_cache_table(THD *thd, const char *, uint,
                                             qc_engine_callback *callback, ulonglong *token) {
  *callback = may_give_out;
  *token = 0;
  if (!stands_alone(thd)) return false;
  uint64_t number = shared_->changes->settled();
  if (number == 0) return false;
  *token = kept_results.token_of(shared_->changes, number);
  return true;
}
