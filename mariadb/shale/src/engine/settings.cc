// The values of the global variables, and those of a session's, which the server keeps.

#include "engine/settings.h"

#include "server.h"

#include <algorithm>

namespace shale_sql {
namespace settings {

Globals globals;

std::string codec() {
  std::string name = globals.compression == nullptr ? "" : globals.compression;
  return name == "auto" ? "" : name;
}

bool sync_at_commit() { return globals.durability == kFull; }

static MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                          "Seconds that a statement waits for a lock before error 1205", nullptr,
                          nullptr, 50, 0, 1024 * 1024 * 1024, 0);
static MYSQL_THDVAR_ULONGLONG(
    sort_memory, PLUGIN_VAR_RQCMDARG,
    "Bytes that ALTER TABLE and CREATE TABLE ... SELECT take to sort what they put into indexes; "
    "more goes to temporary files in tmpdir",
    nullptr, nullptr, 64ULL << 20, 1ULL << 20, 1ULL << 40, 1 << 20);
static MYSQL_THDVAR_UINT(
    alter_rest, PLUGIN_VAR_RQCMDARG,
    "Percentage of its time for which ALTER TABLE rests, while it reads and sorts a table that "
    "others write to: they get on faster, and it takes longer. 0: it never rests",
    nullptr, nullptr, 50, 0, 95, 0);
static MYSQL_THDVAR_BOOL(bulk_load, PLUGIN_VAR_OPCMDARG,
                         "Statements that insert many rows commit in parts: for loads that can be "
                         "done again, not within transactions",
                         nullptr, nullptr, false);

static MYSQL_THDVAR_BOOL(ft_enable_stopword, PLUGIN_VAR_OPCMDARG,
                         "FULLTEXT indexes that are made leave out the words of the list of "
                         "stop words, which is InnoDB's",
                         nullptr, nullptr, true);

st_mysql_sys_var *lock_wait_variable() { return MYSQL_SYSVAR(lock_wait_timeout); }
st_mysql_sys_var *sort_memory_variable() { return MYSQL_SYSVAR(sort_memory); }
st_mysql_sys_var *alter_rest_variable() { return MYSQL_SYSVAR(alter_rest); }
st_mysql_sys_var *bulk_load_variable() { return MYSQL_SYSVAR(bulk_load); }
st_mysql_sys_var *stopword_variable() { return MYSQL_SYSVAR(ft_enable_stopword); }

// NOWAIT and WAIT n set the server's own timeout for their statement.
unsigned long lock_wait_millis(THD *thd) {
  return std::min<unsigned long>(THDVAR(thd, lock_wait_timeout),
                                 thd->variables.lock_wait_timeout) * 1000;
}

size_t sort_memory(THD *thd) { return THDVAR(thd, sort_memory); }

unsigned alter_rest(THD *thd) { return THDVAR(thd, alter_rest); }

bool bulk_load(THD *thd) { return THDVAR(thd, bulk_load); }

WordRules word_rules(THD *thd) {
  WordRules rules;
  rules.min_chars = static_cast<uint32_t>(globals.min_token_size);
  rules.max_chars = static_cast<uint32_t>(globals.max_token_size);
  rules.stopwords = THDVAR(thd, ft_enable_stopword);
  return rules;
}

}  // namespace settings
}  // namespace shale_sql
