// A copy of the database.
#pragma once

#include "engine/errors.h"

#include <string>

struct handlerton;

namespace shale_sql {

// Fills in what the server calls for a backup.
void fill_backup(handlerton *hton);

// A copy of the database in a folder, which must not exist, by hard links (`SET GLOBAL
// shale_checkpoint`). With a binary log: as of one place of it, which is written into a file beside
// the copy, `folder`.binlog-position: exactly, if it is done in BACKUP STAGE BLOCK_COMMIT; else
// what is under way of XA, DDL, or with tables of Aria beside may be on either side. Refused while
// a load in parts is under way.
Error make_checkpoint(const std::string &folder);

// If the database was a copy until now: rolls back the transactions that the server had prepared
// when it was made, which are in the binary log behind the copy's place, or never were. Before the
// server asks for prepared ones.
Error begin_copy_of_database();

}  // namespace shale_sql
