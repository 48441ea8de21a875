// Syncs for those who wait for what is in the log already.

#include "engine/unsynced.h"

#include "engine/engine.h"

namespace shale_sql {

Error Unsynced::sync() {
  const uint64_t written = written_.load();
  uint64_t synced = synced_.load();
  if (synced >= written) return 0;
  if (Error error = consume_error(shale_sync(engine().db))) return error;
  while (synced < written && !synced_.compare_exchange_weak(synced, written)) {
  }
  return 0;
}

}  // namespace shale_sql
