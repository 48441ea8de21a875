// Prepared transactions whose decision has failed: trying them again, and telling the server then.

#include "txn/in_doubt.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "tables/query_cache.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>

namespace shale_sql {

namespace {

// How long somebody who tries again is waited for.
constexpr std::chrono::seconds kPatience{10};

}  // namespace

// With the lock.
bool InDoubt::has_commits() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const Decision &one) { return one.commit; });
}

void InDoubt::notify(void *cookie) {
  Error error = consume_error(shale_sync(engine().db));
  if (!error) {
    commit_checkpoint_notify_ha(cookie);
    return;
  }
  log_error("what was committed cannot be made durable: " + error.text());
  std::lock_guard<std::mutex> lock(lock_);
  cookies_.push_back(cookie);
}

// Tries all again, or waits for who does so; with the lock then.
std::unique_lock<std::mutex> InDoubt::after_a_try() {
  try_again();
  std::unique_lock<std::mutex> lock(lock_);
  tried_.wait_for(lock, kPatience, [this] { return !trying_; });
  return lock;
}

// Whether it is done now; or was: then only the sync had failed.
bool InDoubt::done_now(const Decision &one) {
  ChangesOfAnyTable changes;
  ErrorHandle error(shale_prepared_decide(one.prepared, one.commit, true));
  return !error || shale_error_kind_of(error.get()) == SHALE_INVALID_ARGUMENT;
}

Error InDoubt::decide(shale_prepared *prepared, bool commit, bool sync) {
  Error error = consume_error(shale_prepared_decide(prepared, commit, sync));
  if (!error) {
    shale_prepared_free(prepared);
    return 0;
  }
  log_error(std::string("a prepared transaction could not be ") +
            (commit ? "committed, which is in the binary log: " : "rolled back: ") + error.text() +
            "; it is tried again every second, and its rows are locked until then");
  std::lock_guard<std::mutex> lock(lock_);
  pending_.push_back({prepared, commit});
  return error;
}

bool InDoubt::any_commits() {
  std::lock_guard<std::mutex> lock(lock_);
  return trying_ || has_commits();
}

void InDoubt::try_again() {
  std::vector<Decision> now, left;
  {
    std::lock_guard<std::mutex> lock(lock_);
    if (trying_ || (pending_.empty() && cookies_.empty())) return;
    trying_ = true;
    now.swap(pending_);
  }
  // Without the lock, which commits of others need while they hold locks of the server.
  for (const Decision &one : now) {
    if (done_now(one)) {
      shale_prepared_free(one.prepared);
    } else {
      left.push_back(one);
    }
  }
  size_t done = now.size() - left.size();
  if (done != 0) {
    log_note(std::to_string(done) + " in-doubt transactions were committed or rolled back");
  }
  std::vector<void *> due;
  {
    std::lock_guard<std::mutex> lock(lock_);
    trying_ = false;
    pending_.insert(pending_.begin(), left.begin(), left.end());
    if (!has_commits()) due.swap(cookies_);
  }
  tried_.notify_all();
  for (void *cookie : due) notify(cookie);
}

Error InDoubt::finish_commits() {
  std::unique_lock<std::mutex> lock = after_a_try();
  if (!trying_ && !has_commits()) return 0;
  return Error(kErrEngine, "a transaction that is in the binary log could not be committed yet: "
                            "the server's error log says why");
}

void InDoubt::notify_when_durable(void *cookie) {
  {
    std::lock_guard<std::mutex> lock(lock_);
    if (trying_ || has_commits()) {
      cookies_.push_back(cookie);
      return;
    }
  }
  notify(cookie);
}

void InDoubt::before_shutdown() {
  std::unique_lock<std::mutex> lock = after_a_try();
  if (!trying_ && pending_.empty()) return;
  log_error("prepared transactions are decided and could not be committed or rolled back: the "
            "server ends without closing its binary log, from which the next start does that");
  _exit(1);
}

void InDoubt::forget() {
  std::lock_guard<std::mutex> lock(lock_);
  for (const Decision &one : pending_) shale_prepared_free(one.prepared);
  pending_.clear();
  cookies_.clear();
}

}  // namespace shale_sql
