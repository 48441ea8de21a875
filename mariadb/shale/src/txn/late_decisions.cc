// Prepared transactions whose decision has failed: trying them again, and telling the server then.

#include "txn/late_decisions.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "tables/query_cache.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace shale_sql {
namespace late_decisions {

namespace {

struct Late {
  shale_prepared *prepared;
  bool commit;
};

// How long somebody who tries again is waited for.
constexpr std::chrono::seconds kPatience{10};

std::mutex mutex;
std::condition_variable tried;
std::vector<Late> kept;
bool trying = false;  // some are not in `kept` meanwhile
std::vector<void *> cookies;

bool has_commits() {
  return std::any_of(kept.begin(), kept.end(), [](const Late &one) { return one.commit; });
}

void tell(void *cookie) {
  if (number_of(shale_sync(engine.db)) == 0) {
    commit_checkpoint_notify_ha(cookie);
    return;
  }
  log_error("what was committed cannot be made durable: " + last_text());
  std::lock_guard<std::mutex> lock(mutex);
  cookies.push_back(cookie);
}

// Tries all again, or waits for who does so; with the mutex then.
std::unique_lock<std::mutex> after_a_try() {
  try_again();
  std::unique_lock<std::mutex> lock(mutex);
  tried.wait_for(lock, kPatience, [] { return !trying; });
  return lock;
}

// Whether it is done now; or was: then only the sync had failed.
bool done_now(const Late &one) {
  ChangesOfAnyTable changes;
  ErrorHandle error(shale_prepared_decide(one.prepared, one.commit, true));
  return !error || shale_error_kind_of(error.get()) == SHALE_INVALID_ARGUMENT;
}

}  // namespace

int decide(shale_prepared *prepared, bool commit, bool sync) {
  int error = number_of(shale_prepared_decide(prepared, commit, sync));
  if (error == 0) {
    shale_prepared_free(prepared);
    return 0;
  }
  log_error(std::string("a prepared transaction could not be ") +
            (commit ? "committed, which is in the binary log: " : "rolled back: ") + last_text() +
            "; it is tried again every second, and its rows are locked until then");
  std::lock_guard<std::mutex> lock(mutex);
  kept.push_back({prepared, commit});
  return error;
}

bool any_commits() {
  std::lock_guard<std::mutex> lock(mutex);
  return trying || has_commits();
}

void try_again() {
  std::vector<Late> now, left;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (trying || (kept.empty() && cookies.empty())) return;
    trying = true;
    now.swap(kept);
  }
  // Without the mutex, which commits of others need with the server's locks held.
  for (const Late &one : now) {
    if (done_now(one)) {
      shale_prepared_free(one.prepared);
    } else {
      left.push_back(one);
    }
  }
  size_t done = now.size() - left.size();
  if (done != 0) {
    log_note(std::to_string(done) + " late transactions were committed or rolled back");
  }
  std::vector<void *> told;
  {
    std::lock_guard<std::mutex> lock(mutex);
    trying = false;
    kept.insert(kept.begin(), left.begin(), left.end());
    if (!has_commits()) told.swap(cookies);
  }
  tried.notify_all();
  for (void *cookie : told) tell(cookie);
}

int settle_commits() {
  std::unique_lock<std::mutex> lock = after_a_try();
  if (!trying && !has_commits()) return 0;
  return failed(kErrEngine, "a transaction that is in the binary log could not be committed yet: "
                            "the server's error log says why");
}

void tell_when_durable(void *cookie) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (trying || has_commits()) {
      cookies.push_back(cookie);
      return;
    }
  }
  tell(cookie);
}

void before_shutdown() {
  std::unique_lock<std::mutex> lock = after_a_try();
  if (!trying && kept.empty()) return;
  log_error("prepared transactions are decided and could not be committed or rolled back: the "
            "server ends without closing its binary log, from which the next start does that");
  _exit(1);
}

void forget() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Late &one : kept) shale_prepared_free(one.prepared);
  kept.clear();
  cookies.clear();
}

}  // namespace late_decisions
}  // namespace shale_sql
