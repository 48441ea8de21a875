// The values of the global variables, and those of a session's, which the server keeps.

#include "engine/settings.h"

#include "server.h"

#include <algorithm>

namespace shale_sql {
namespace settings {

Globals globals;

std::string codec() {
  // SET GLOBAL frees the text that was there.
  mysql_mutex_lock(&LOCK_global_system_variables);
  std::string name = globals.compression == nullptr ? "" : globals.compression;
  mysql_mutex_unlock(&LOCK_global_system_variables);
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

// It lets a statement read files that are not the server's.
static int check_import_from(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[FN_REFLEN];
  int length = sizeof(buffer);
  const char *given = value->val_str(value, buffer, &length);
  if (given != nullptr && length > 0) {
    if (check_global_access(thd, FILE_ACL)) return 1;
    std::string path(given, static_cast<size_t>(length));
    if (!is_secure_file_path(&path[0])) {
      my_error(ER_OPTION_PREVENTS_STATEMENT, MYF(0), "--secure-file-priv");
      return 1;
    }
  }
  *static_cast<const char **>(save) =
      given == nullptr ? nullptr : thd_strmake(thd, given, static_cast<size_t>(length));
  return 0;
}

static MYSQL_THDVAR_STR(import_from, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
                        "The folder of a backup of which ALTER TABLE ... IMPORT TABLESPACE takes "
                        "the table, or the .frm file in it of another table; empty: a file beside "
                        "the table's definition",
                        check_import_from, nullptr, "");

static MYSQL_THDVAR_BOOL(ft_enable_stopword, PLUGIN_VAR_OPCMDARG,
                         "FULLTEXT indexes that are made leave out the words of the list of "
                         "stop words, which is InnoDB's",
                         nullptr, nullptr, true);

st_mysql_sys_var *lock_wait_variable() { return MYSQL_SYSVAR(lock_wait_timeout); }
st_mysql_sys_var *sort_memory_variable() { return MYSQL_SYSVAR(sort_memory); }
st_mysql_sys_var *alter_rest_variable() { return MYSQL_SYSVAR(alter_rest); }
st_mysql_sys_var *bulk_load_variable() { return MYSQL_SYSVAR(bulk_load); }
st_mysql_sys_var *import_from_variable() { return MYSQL_SYSVAR(import_from); }
st_mysql_sys_var *stopword_variable() { return MYSQL_SYSVAR(ft_enable_stopword); }

namespace {

enum class NamedWait { kNo, kByVariable, kByStatement };

// NOWAIT and WAIT n set the server's own timeout for their statement, and InnoDB's. Who sets the
// server's alone (SET STATEMENT) bounds what waits by that of rows.
NamedWait named_wait(THD *thd) {
  // A replica does not set what its statements name.
  if (thd->slave_thread || thd->lex->stmt_var_list.is_empty()) return NamedWait::kNo;
  bool server = false, innodb = false;
  List_iterator_fast<set_var_base> all(thd->lex->stmt_var_list);
  while (set_var_base *one = all++) {
    if (!one->is_system()) continue;
    const char *name = static_cast<set_var *>(one)->var->name.str;
    server = server || strcmp(name, "lock_wait_timeout") == 0;
    innodb = innodb || strcmp(name, "innodb_lock_wait_timeout") == 0;
  }
  if (!server) return NamedWait::kNo;
  // Without InnoDB it has no variable, and who sets the server's is taken to say WAIT.
  const LEX_CSTRING other = {STRING_WITH_LEN("InnoDB")};
  const bool by_statement = innodb || !plugin_is_ready(&other, MYSQL_STORAGE_ENGINE_PLUGIN);
  return by_statement ? NamedWait::kByStatement : NamedWait::kByVariable;
}

}  // namespace

unsigned long definition_wait_millis(THD *thd) {
  const unsigned long of_server = thd->variables.lock_wait_timeout;
  if (named_wait(thd) == NamedWait::kByStatement) return of_server * 1000;
  return std::min<unsigned long>(THDVAR(thd, lock_wait_timeout), of_server) * 1000;
}

unsigned long session_lock_wait_millis(THD *thd) { return THDVAR(thd, lock_wait_timeout) * 1000; }

unsigned long lock_wait_millis(THD *thd) {
  return named_wait(thd) == NamedWait::kNo ? session_lock_wait_millis(thd)
                                           : definition_wait_millis(thd);
}

size_t sort_memory(THD *thd) { return THDVAR(thd, sort_memory); }

unsigned alter_rest(THD *thd) { return THDVAR(thd, alter_rest); }

bool bulk_load(THD *thd) { return THDVAR(thd, bulk_load); }

std::string import_from(THD *thd) {
  const char *folder = THDVAR(thd, import_from);
  return folder == nullptr ? "" : folder;
}

WordRules word_rules(THD *thd) {
  WordRules rules;
  rules.min_chars = static_cast<uint32_t>(globals.min_token_size);
  rules.max_chars = static_cast<uint32_t>(globals.max_token_size);
  rules.stopwords = THDVAR(thd, ft_enable_stopword);
  return rules;
}

}  // namespace settings
}  // namespace shale_sql
