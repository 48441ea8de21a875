// Reporting lock waits to the server. An applier of a replica that waits for one that has to commit
// after it would wait for ever, so the server ends the later one and does it again. A pool of
// threads has others work while one waits.
#pragma once

#include "engine/errors.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

class THD;
struct shale_db;

namespace shale_sql {

class WaitReports {
 public:
  // From now on waits of this database are reported.
  Error observe(shale_db *db);

  // The engine's transaction of a connection, while it has one. False: the server has no use for
  // it, which is so without a binary log but for appliers. When `forget` returns nothing is
  // reported about it any more.
  bool note(uint64_t transaction, THD *thd);
  void forget(uint64_t transaction);

 private:
  // Apart, so that transactions that begin at once seldom meet.
  struct Part {
    std::mutex lock;
    std::unordered_map<uint64_t, THD *> threads;
  };

  static void waits(void *context, uint64_t waiter, uint64_t holder);
  Part &part_of(uint64_t transaction) { return parts_[transaction % parts_.size()]; }

  std::array<Part, 16> parts_;
};

}  // namespace shale_sql
