// Prepared transactions that the server has decided, and whose commit or rollback then failed in
// the engine (a full disk, a failing one). They stay prepared, with their locks, and are tried
// again until that succeeds. Commits are in the binary log: the server must not forget before what
// that says of them, nor end as if nothing were left to do, and nobody may take a table for whole
// without them.
#pragma once

struct shale_prepared;

namespace shale_sql {
namespace late_decisions {

// Decides now, or else later; takes over the handle. 0, or the number of the error for which it
// comes later.
int decide(shale_prepared *prepared, bool commit, bool sync);
// Tries all again. By the thread that looks after the engine, once a second.
void try_again();
// Tries all again, or waits for who does so. 0 if no commit is left, else the number of an error
// that says so.
int settle_commits();
// Whether there are commits, now.
bool any_commits();
// The server asks to be told when all that is in older binary logs is durable in the engine.
void tell_when_durable(void *cookie);
// Before the server closes its binary log: ends the process if any are left, as a crash would, so
// that the next start looks into the log.
void before_shutdown();
// The engine is closed.
void forget();

}  // namespace late_decisions
}  // namespace shale_sql
