// Transactions that the server has committed by writing them to the binary log, and whose commit then
// failed in the engine (a full disk, a failing one). They stay prepared, with their locks, and are
// tried again until that succeeds; the server must not forget before that what its log says of them.
#pragma once

#include <string>

struct shale_prepared;

namespace shale_sql {
namespace late_commits {

// Takes one over; `why` it failed.
void keep(shale_prepared *prepared, const std::string &why);
// Tries all again; whether none is left. By the thread that looks after the engine, once a second.
bool try_again();
// Whether there are any, now.
bool any();
// The server asks to be told when all that is in older binary logs is durable in the engine.
void tell_when_durable(void *cookie);
// At the end: what is left is found prepared by the next start, and is in the binary log.
void forget();

}  // namespace late_commits
}  // namespace shale_sql
