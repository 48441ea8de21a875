// The system variables, what is checked and done when one is set, and their values.

#include "settings.h"

#include "server.h"

#include "checkpoint.h"
#include "engine.h"
#include "errors.h"

namespace shale_sql {
namespace settings {

unsigned long long memory;
unsigned long durability;

static char *default_compression;

std::string codec() {
  std::string name = default_compression == nullptr ? "" : default_compression;
  return name == "auto" ? "" : name;
}

static int check_compression(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[64];
  int length = sizeof(buffer);
  const char *given = value->val_str(value, buffer, &length);
  if (given == nullptr) return 1;
  std::string codec = given, why;
  if (codec != "auto" && !check_codec(codec, &why)) {
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "shale_compression='%s': %s", MYF(0), given,
                    why.c_str());
    return 1;
  }
  *static_cast<const char **>(save) = thd_strmake(thd, given, strlen(given));
  return 0;
}

static const char *durability_names[] = {"none", "full", "periodic", NullS};
static TYPELIB durability_values = {array_elements(durability_names) - 1, "durability",
                                    durability_names, nullptr};

// Ends when nothing is left to flush or to merge: for measurements and before copies of files.
static void settle(THD *, st_mysql_sys_var *, void *, const void *save) {
  if (!*static_cast<const my_bool *>(save)) return;
  shale_error *error = shale_flush(engine.db, nullptr);
  if (number_of(error != nullptr ? error : shale_wait_idle(engine.db)) != 0) {
    my_printf_error(ER_GET_ERRMSG, "SHALE: shale_settle_now: %s", MYF(0), last_text().c_str());
  }
}
static my_bool settle_now;

static char *checkpoint;

// What it is set to is done before it is set, so that a failure fails the statement.
static int make_checkpoint(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[FN_REFLEN];
  int length = sizeof(buffer);
  const char *given = value->val_str(value, buffer, &length);
  if (given == nullptr) return 1;
  std::string folder(given, static_cast<size_t>(length));
  if (!folder.empty() && shale_sql::make_checkpoint(folder) != 0) {
    my_printf_error(ER_GET_ERRMSG, "SHALE: no checkpoint was made: %s", MYF(0),
                    last_text().c_str());
    return 1;
  }
  *static_cast<const char **>(save) = thd_strmake(thd, folder.data(), folder.size());
  return 0;
}

static MYSQL_SYSVAR_ULONGLONG(
    memory, memory, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
    "Bytes for block cache, memtables, indexes and filters together. 0: a quarter of the machine's "
    "memory",
    nullptr, nullptr, 0, 0, 1ULL << 46, 0);
static MYSQL_SYSVAR_ENUM(
    durability, durability, PLUGIN_VAR_RQCMDARG,
    "When commits are durable. full: before they return; periodic: within a second; none: when the "
    "system writes. A crash of the server alone loses nothing in any case",
    nullptr, nullptr, kFull, &durability_values);
static MYSQL_SYSVAR_STR(
    compression, default_compression, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
    "Codec of tables made without COMPRESSION: auto, none, lz4, zstd:1 to zstd:19, zlib:1 to "
    "zlib:9",
    check_compression, nullptr, "auto");
static MYSQL_SYSVAR_BOOL(settle_now, settle_now, PLUGIN_VAR_RQCMDARG,
                         "Set to ON: flushes memtables and waits until no compaction is due",
                         nullptr, settle, false);
static MYSQL_SYSVAR_STR(checkpoint, checkpoint,
                        PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC | PLUGIN_VAR_NOCMDOPT,
                        "Set to the path of a folder that does not exist: makes a copy of all "
                        "tables there by hard links, while others write",
                        make_checkpoint, nullptr, "");
static MYSQL_THDVAR_ULONG(lock_wait_timeout, PLUGIN_VAR_RQCMDARG,
                          "Seconds that a statement waits for a lock before error 1205", nullptr,
                          nullptr, 50, 0, 1024 * 1024 * 1024, 0);
static MYSQL_THDVAR_ULONGLONG(
    sort_memory, PLUGIN_VAR_RQCMDARG,
    "Bytes that ALTER TABLE and CREATE TABLE ... SELECT take to sort what they put into indexes; "
    "more goes to temporary files in tmpdir",
    nullptr, nullptr, 64ULL << 20, 1ULL << 20, 1ULL << 40, 1 << 20);
static MYSQL_THDVAR_BOOL(bulk_load, PLUGIN_VAR_OPCMDARG,
                         "Statements that insert many rows commit in parts: for loads that can be "
                         "done again, not within transactions",
                         nullptr, nullptr, false);

st_mysql_sys_var *variables[] = {MYSQL_SYSVAR(memory),      MYSQL_SYSVAR(durability),
                                 MYSQL_SYSVAR(compression), MYSQL_SYSVAR(lock_wait_timeout),
                                 MYSQL_SYSVAR(bulk_load),   MYSQL_SYSVAR(settle_now),
                                 MYSQL_SYSVAR(sort_memory), MYSQL_SYSVAR(checkpoint),
                                 nullptr};

size_t sort_memory(THD *thd) { return THDVAR(thd, sort_memory); }

static unsigned long lock_wait_seconds(THD *thd) { return THDVAR(thd, lock_wait_timeout); }
static bool in_bulk(THD *thd) { return THDVAR(thd, bulk_load); }

}  // namespace settings

bool sync_at_commit() { return settings::durability == settings::kFull; }

// NOWAIT and WAIT n set the server's own timeout for their statement.
unsigned long lock_wait_millis(THD *thd) {
  return std::min<unsigned long>(settings::lock_wait_seconds(thd),
                                 thd->variables.lock_wait_timeout) * 1000;
}

bool bulk_load(THD *thd) { return settings::in_bulk(thd); }

}  // namespace shale_sql
