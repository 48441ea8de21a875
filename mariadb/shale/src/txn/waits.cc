// The connections of transactions, by number, for the callback of the engine.

#include "txn/waits.h"

#include "server.h"

#include "engine/errors.h"

#include <array>
#include <mutex>
#include <unordered_map>

// Of the server, in none of its headers.
extern "C" int thd_need_wait_reports(const THD *thd);
extern "C" int thd_rpl_deadlock_check(THD *thd, THD *other);

namespace shale_sql {

namespace {

// Apart, so that transactions that begin at once seldom meet.
struct Part {
  std::mutex lock;
  std::unordered_map<uint64_t, THD *> threads;
};
std::array<Part, 16> parts;

Part &part_of(uint64_t transaction) { return parts[transaction % parts.size()]; }

// Called by the thread that waits.
void waits(void *, uint64_t, uint64_t holder) {
  THD *waiter = current_thd;
  if (waiter == nullptr || thd_need_wait_reports(waiter) == 0) return;
  // Held during the call: the holder's connection stays as long as it is in the map.
  Part &part = part_of(holder);
  std::lock_guard<std::mutex> one_at_a_time(part.lock);
  auto found = part.threads.find(holder);
  thd_rpl_deadlock_check(waiter, found == part.threads.end() ? nullptr : found->second);
}

}  // namespace

int tell_of_waits(shale_db *db) { return number_of(shale_observe_lock_waits(db, waits, nullptr)); }

bool note_for_waits(uint64_t transaction, THD *thd) {
  if (thd_need_wait_reports(thd) == 0) return false;
  Part &part = part_of(transaction);
  std::lock_guard<std::mutex> one_at_a_time(part.lock);
  part.threads[transaction] = thd;
  return true;
}

void forget_for_waits(uint64_t transaction) {
  Part &part = part_of(transaction);
  std::lock_guard<std::mutex> one_at_a_time(part.lock);
  part.threads.erase(transaction);
}

}  // namespace shale_sql
