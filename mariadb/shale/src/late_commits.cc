#include "server.h"

#include "engine.h"
#include "errors.h"
#include "late_commits.h"

#include <mutex>
#include <vector>

namespace shale_sql {
namespace late_commits {

namespace {

std::mutex mutex;
std::vector<shale_prepared *> kept;
bool trying = false;  // some are not in `kept` meanwhile
std::vector<void *> cookies;

void tell(void *cookie) {
  if (number_of(shale_sync(engine.db)) == 0) {
    commit_checkpoint_notify_ha(cookie);
  } else {
    log_error("what was committed cannot be made durable: " + last_text());
  }
}

// Whether it is committed now; or was: then only the sync had failed.
bool commit_now(shale_prepared *prepared) {
  ErrorHandle error(shale_prepared_decide(prepared, true, true));
  return !error || shale_error_kind_of(error.get()) == SHALE_INVALID_ARGUMENT;
}

}  // namespace

void keep(shale_prepared *prepared, const std::string &why) {
  log_error("a transaction that is in the binary log could not be committed: " + why +
            "; it is tried again every second, and its rows are locked until then");
  std::lock_guard<std::mutex> lock(mutex);
  kept.push_back(prepared);
}

bool any() {
  std::lock_guard<std::mutex> lock(mutex);
  return trying || !kept.empty();
}

bool try_again() {
  std::vector<shale_prepared *> now, left;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (trying) return false;
    if (kept.empty()) return true;
    trying = true;
    now.swap(kept);
  }
  // Without the mutex, which commits of others need with the server's locks held.
  for (shale_prepared *one : now) {
    if (commit_now(one)) {
      shale_prepared_free(one);
    } else {
      left.push_back(one);
    }
  }
  size_t done = now.size() - left.size();
  if (done != 0) log_note(std::to_string(done) + " late transactions were committed");
  std::vector<void *> told;
  bool none_left;
  {
    std::lock_guard<std::mutex> lock(mutex);
    trying = false;
    kept.insert(kept.begin(), left.begin(), left.end());
    none_left = kept.empty();
    if (none_left) told.swap(cookies);
  }
  for (void *cookie : told) tell(cookie);
  return none_left;
}

void tell_when_durable(void *cookie) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (trying || !kept.empty()) {
      cookies.push_back(cookie);
      return;
    }
  }
  tell(cookie);
}

void forget() {
  std::lock_guard<std::mutex> lock(mutex);
  for (shale_prepared *one : kept) shale_prepared_free(one);
  kept.clear();
  cookies.clear();
}

}  // namespace late_commits
}  // namespace shale_sql
