// Syncs for those who wait for what is in the log already.

#include "engine/unsynced.h"

#include "server.h"

#include "engine/handles.h"

namespace shale_sql {

Error Unsynced::sync(shale_db *db) {
  const uint64_t written = written_.load();
  uint64_t synced = synced_.load();
  if (synced >= written) return 0;
  if (Error error = consume_error(shale_sync(db))) return error;
  while (synced < written && !synced_.compare_exchange_weak(synced, written)) {
  }
  return 0;
}

}  // namespace shale_sql
