// Counts the loads that have committed a part, and keeps parts from being committed beside a copy.

#include "txn/load_in_parts.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"

namespace shale_sql {

Error LoadInParts::commit(shale_txn *part) {
  LoadGate &gate = engine().load_gate;
  std::shared_lock<std::shared_mutex> lock(gate.mutex);
  if (!begun_) gate.loads++;
  begun_ = true;
  durable_ = false;
  return consume_error(shale_txn_commit(part, false));
}

Error LoadInParts::make_durable() {
  if (durable_ || !settings::sync_at_commit()) return 0;
  Error error = consume_error(shale_sync(engine().db));
  durable_ = !error;
  return error;
}

void LoadInParts::end() {
  if (begun_) engine().load_gate.loads--;
  begun_ = false;
  durable_ = true;
}

NoParts::NoParts() : lock_(engine().load_gate.mutex, std::try_to_lock) {}

bool NoParts::is_beside_loads() const {
  return !lock_ || engine().load_gate.loads.load() != 0;
}

}  // namespace shale_sql
