// In-doubt decisions: prepared transactions that the server has decided, and whose commit or
// rollback then failed in the engine (a full disk, a failing one). They stay prepared, with their
// locks, and are tried again until that succeeds. Such commits are in the binary log. While one is
// pending, binary logs are kept, the server does not end as if nothing were left to do, and backups
// and ALTER TABLE fail, because both would miss its rows.
#pragma once

#include "engine/errors.h"

#include <condition_variable>
#include <mutex>
#include <vector>

struct shale_prepared;

namespace shale_sql {

class InDoubt {
 public:
  InDoubt() = default;
  InDoubt(const InDoubt &) = delete;
  InDoubt &operator=(const InDoubt &) = delete;

  // Decides now, or else later, and gives the error for which it comes later; takes over the
  // handle.
  Error decide(shale_prepared *prepared, bool commit, bool sync);
  // Tries all again. By the thread that looks after the engine, once a second.
  void try_again();
  // Tries all again, or waits for who does so. An error if a commit is pending.
  Error finish_commits();
  // Whether commits are pending, now.
  bool any_commits();
  // Notifies the server, by its cookie, when all that is in older binary logs is durable.
  void notify_when_durable(void *cookie);
  // Before the server closes its binary log: ends the process if any are pending, as a crash would,
  // so that the next start looks into the log.
  void before_shutdown();
  // Before the engine is closed: what is pending stays prepared there.
  void forget();

 private:
  struct Decision {
    shale_prepared *prepared;
    bool commit;
  };

  static bool done_now(const Decision &one);
  bool has_commits() const;
  void notify(void *cookie);
  std::unique_lock<std::mutex> after_a_try();

  std::mutex lock_;  // of all that follows
  std::condition_variable tried_;
  std::vector<Decision> pending_;
  bool trying_ = false;  // some are not in `pending_` meanwhile
  std::vector<void *> cookies_;
};

}  // namespace shale_sql
