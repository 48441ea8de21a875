// The query cache. The server removes a table's results at the end of each statement that writes to
// it, not at the commit, and asks the engine twice: whether the result of a statement may be kept,
// and whether a kept one may be given out. Both is so for statements that are a transaction of
// their own, while no transaction is under way that has written to the table. So the first reads no
// snapshot of before it asked; and with the number of then unchanged the second would read the
// same.
//
// A statement within a transaction neither keeps nor is given results: it would have to be known
// what its snapshot shows.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// Whether a statement sees what is committed when it begins to read, and nothing of its own.
bool stands_alone(THD *thd) {
  Trx *trx = Trx::find(thd);
  return !in_transaction(thd) && (trx == nullptr || !trx->begun());
}

my_bool may_give_out(THD *thd, const char *, uint, ulonglong *token) {
  if (!engine_is_started()) {
    // The server keeps results beyond the end of the plugin.
    *token = 0;
    return false;
  }
  if (!stands_alone(thd)) return false;
  switch (engine().kept_results.look(*token)) {
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

my_bool ha_shale::register_query_cache_table(THD *thd, const char *, uint,
                                             qc_engine_callback *callback, ulonglong *token) {
  *callback = may_give_out;
  *token = 0;
  if (!stands_alone(thd)) return false;
  uint64_t number = shared_->changes->quiet_number();
  if (number == 0) return false;
  *token = engine().kept_results.token_of(shared_->changes, number);
  return true;
}
