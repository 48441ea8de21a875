// What the system variables are set to; system_variables.h has the variables.
#pragma once

#include "codec/table_def.h"

#include <string>

struct st_mysql_sys_var;
class THD;

namespace shale_sql {
namespace settings {

enum Durability : unsigned long { kNone = 0, kFull = 1, kPeriodic = 2 };

// The values of the global variables. The server has their addresses and sets them, also before
// there is an engine.
struct Globals {
  unsigned long long memory;
  unsigned long long space_limit;  // 0: none
  unsigned long durability;
  char *compression;  // as it was set
  unsigned long min_token_size, max_token_size;  // characters of words in FULLTEXT indexes
};
extern Globals globals;
// Of trees that are made without a codec of their own; empty: the engine's default.
std::string codec();
bool sync_at_commit();

// How long a statement waits for the lock of a row, and how long DDL waits for transactions.
unsigned long lock_wait_millis(THD *thd);
unsigned long definition_wait_millis(THD *thd);
// The former where a statement does not name another.
unsigned long session_lock_wait_millis(THD *thd);
// Bytes that one statement may take to sort what it puts into new trees.
size_t sort_memory(THD *thd);
// The percentage of its time in which an ALTER TABLE rests while others write to the table.
unsigned alter_rest(THD *thd);
bool bulk_load(THD *thd);
// The backup of which IMPORT TABLESPACE takes a table; empty: of a file.
std::string import_from(THD *thd);
// Of FULLTEXT indexes that are made now.
WordRules word_rules(THD *thd);
// The session variables behind these functions; they are defined in settings.cc.
st_mysql_sys_var *lock_wait_variable();
st_mysql_sys_var *sort_memory_variable();
st_mysql_sys_var *alter_rest_variable();
st_mysql_sys_var *bulk_load_variable();
st_mysql_sys_var *import_from_variable();
st_mysql_sys_var *stopword_variable();

}  // namespace settings
}  // namespace shale_sql
