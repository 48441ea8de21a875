// Telling the server who waits for whom: an applier of a replica that waits for one that has to
// commit after it would wait for ever, so the server ends the later one and does it again.
#pragma once

#include <cstdint>

class THD;
struct shale_db;

namespace shale_sql {

// From now on waits of this database are told.
int tell_of_waits(shale_db *db);

// The engine's transaction of a connection, while it has one. False: the server has no use for it,
// which is so without a binary log but for appliers. `forget_for_waits` returns when the server is
// told nothing about it any more.
bool note_for_waits(uint64_t transaction, THD *thd);
void forget_for_waits(uint64_t transaction);

}  // namespace shale_sql
