// Counts the loads that have committed a part, and keeps parts from being committed beside a copy.

#include "txn/load_in_parts.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"

#include <atomic>

namespace shale_sql {

namespace {

// How many loads have committed a part and go on. They commit parts with the mutex shared: with it
// held alone there are no more of either.
std::atomic<unsigned> loads_in_parts{0};
std::shared_mutex parts_mutex;

}  // namespace

int LoadInParts::commit(shale_txn *part) {
  std::shared_lock<std::shared_mutex> lock(parts_mutex);
  if (!begun_) loads_in_parts++;
  begun_ = true;
  durable_ = false;
  return number_of(shale_txn_commit(part, false));
}

int LoadInParts::make_durable() {
  if (durable_ || !settings::sync_at_commit()) return 0;
  int error = number_of(shale_sync(engine.db));
  durable_ = error == 0;
  return error;
}

void LoadInParts::end() {
  if (begun_) loads_in_parts--;
  begun_ = false;
  durable_ = true;
}

NoParts::NoParts() : lock_(parts_mutex, std::try_to_lock) {}

bool NoParts::is_beside_loads() const { return !lock_ || loads_in_parts.load() != 0; }

}  // namespace shale_sql
