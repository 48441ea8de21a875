// The connections of transactions, by number, for the callback of the engine.

#include "txn/waits.h"

#include "server.h"

#include "engine/errors.h"

// Of the server, in none of its headers.
extern "C" int thd_need_wait_reports(const THD *thd);
extern "C" int thd_rpl_deadlock_check(THD *thd, THD *other);

namespace shale_sql {

namespace {
// Whether the pool of threads knows that this one waits.
thread_local bool told_pool = false;
}  // namespace

// Called by the thread that waits, and with the holder 0 when it waits no more. A pool of threads
// lets another one work meanwhile: it may be the holder's.
void WaitReports::waits(void *context, uint64_t, uint64_t holder) {
  THD *waiter = current_thd;
  if (waiter == nullptr) return;
  const bool waits = holder != 0;
  if (waits && !told_pool) thd_wait_begin(waiter, THD_WAIT_ROW_LOCK);
  if (!waits && told_pool) thd_wait_end(waiter);
  told_pool = waits;
  if (!waits || thd_need_wait_reports(waiter) == 0) return;
  // Held during the call: the holder's connection stays as long as it is in the map.
  Part &part = static_cast<WaitReports *>(context)->part_of(holder);
  std::lock_guard<std::mutex> one_at_a_time(part.lock);
  auto found = part.threads.find(holder);
  thd_rpl_deadlock_check(waiter, found == part.threads.end() ? nullptr : found->second);
}

Error WaitReports::observe(shale_db *db) {
  return consume_error(shale_observe_lock_waits(db, waits, this));
}

bool WaitReports::note(uint64_t transaction, THD *thd) {
  if (thd_need_wait_reports(thd) == 0) return false;
  Part &part = part_of(transaction);
  std::lock_guard<std::mutex> one_at_a_time(part.lock);
  part.threads[transaction] = thd;
  return true;
}

void WaitReports::forget(uint64_t transaction) {
  Part &part = part_of(transaction);
  std::lock_guard<std::mutex> one_at_a_time(part.lock);
  part.threads.erase(transaction);
}

}  // namespace shale_sql
