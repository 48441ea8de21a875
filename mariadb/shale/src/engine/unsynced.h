// What was written to the log without a sync, outside of transactions.
#pragma once

#include "engine/errors.h"

#include <atomic>
#include <cstdint>

struct shale_db;

namespace shale_sql {

// Rows of sequences are written so. Values of one may be told to others than who has written it,
// so that each who has asked a sequence makes sure that its row is durable.
class Unsynced {
 public:
  // After such a write.
  void note() { written_.fetch_add(1); }
  bool any() const { return synced_.load() < written_.load(); }
  // Syncs the log unless nothing was written since it was last done here.
  Error sync(shale_db *db);

 private:
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> synced_{0};
};

}  // namespace shale_sql
