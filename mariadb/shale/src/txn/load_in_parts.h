// Loads that are committed in parts, and what must wait for them.
#pragma once

#include "engine/errors.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>

struct shale_txn;

namespace shale_sql {

// How many loads have committed a part and go on. They commit parts with the mutex shared: whoever
// has it alone keeps both from becoming more.
struct LoadGate {
  std::shared_mutex mutex;
  std::atomic<unsigned> loads{0};
};

// A load that is committed in parts (shale_bulk_load), and goes to the binary log as a whole at its
// end: of a copy with some of the parts the binary log would not make the original. It counts from
// its first part to the end of its transaction.
class LoadInParts {
 public:
  LoadInParts() = default;
  LoadInParts(const LoadInParts &) = delete;
  LoadInParts &operator=(const LoadInParts &) = delete;
  ~LoadInParts() { end(); }

  // Commits a part, and waits for a copy that is being made.
  Error commit(shale_txn *part);
  // Where commits are durable: the parts are, which were committed without.
  Error make_durable();
  void end();

 private:
  bool begun_ = false;
  bool durable_ = true;
};

// No part is committed while it lives, unless one was just then when it was made.
class NoParts {
 public:
  NoParts();
  // Whether one was, or a load has committed some and goes on.
  bool is_beside_loads() const;

 private:
  std::unique_lock<std::shared_mutex> lock_;
};

}  // namespace shale_sql
