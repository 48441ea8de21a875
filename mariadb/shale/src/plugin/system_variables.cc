// The variables that the server is told of, and what is checked and done when one is set.

#include "plugin/system_variables.h"

#include "server.h"

#include "backup/checkpoint.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "engine/trees.h"
#include "words/stopword_table.h"

namespace shale_sql {

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
static void set_wait_idle(THD *, st_mysql_sys_var *, void *, const void *save) {
  if (!*static_cast<const my_bool *>(save)) return;
  shale_error *error = shale_flush(engine().db, nullptr);
  if (error == nullptr) error = shale_wait_idle(engine().db);
  if (Error failure = consume_error(error)) {
    my_printf_error(ER_GET_ERRMSG, "SHALE: shale_wait_idle: %s", MYF(0), failure.text().c_str());
  }
}
static my_bool wait_idle;

static constexpr unsigned long long kMostSpace = 1ULL << 60;

static char *checkpoint;

// What it is set to is done before it is set, so that a failure fails the statement.
static int check_checkpoint(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[FN_REFLEN];
  int length = sizeof(buffer);
  const char *given = value->val_str(value, buffer, &length);
  if (given == nullptr) return 1;
  std::string folder(given, static_cast<size_t>(length));
  Error error = folder.empty() ? Error() : make_checkpoint(folder);
  if (error) {
    my_printf_error(ER_GET_ERRMSG, "SHALE: no checkpoint was made: %s", MYF(0),
                    error.text().c_str());
    return 1;
  }
  *static_cast<const char **>(save) = thd_strmake(thd, folder.data(), folder.size());
  return 0;
}

// Sets the limit on space; tells by an error of this number why it cannot be kept.
static bool limit_space(unsigned long long bytes, uint number) {
  Error error = consume_error(shale_set_space_limit(engine().db, bytes));
  if (error) my_printf_error(number, "SHALE: shale_space_limit: %s", MYF(0), error.text().c_str());
  return !error;
}

// As that of the checkpoint: a limit that cannot be kept fails the statement. That there is none is
// set after it, as the default, which is not checked.
static int check_space_limit(THD *, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  long long given = 0;
  if (value->val_int(value, &given) != 0) return 1;
  const auto bytes = static_cast<unsigned long long>(given);
  if ((given < 0 && !value->is_unsigned(value)) || bytes > kMostSpace) {
    my_printf_error(ER_WRONG_VALUE_FOR_VAR, "SHALE: shale_space_limit: it is from 0 to %llu",
                    MYF(0), kMostSpace);
    return 1;
  }
  if (bytes != 0 && !limit_space(bytes, ER_WRONG_VALUE_FOR_VAR)) return 1;
  *static_cast<unsigned long long *>(save) = bytes;
  return 0;
}

static void set_space_limit(THD *, st_mysql_sys_var *, void *to, const void *save) {
  const auto bytes = *static_cast<const unsigned long long *>(save);
  if (bytes == 0) limit_space(0, ER_GET_ERRMSG);
  *static_cast<unsigned long long *>(to) = bytes;
}

static MYSQL_SYSVAR_ULONGLONG(
    memory, settings::globals.memory, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
    "Bytes for block cache, memtables, indexes and filters together. 0: a quarter of the machine's "
    "memory",
    nullptr, nullptr, 0, 0, 1ULL << 46, 0);
static MYSQL_SYSVAR_ULONGLONG(
    space_limit, settings::globals.space_limit, PLUGIN_VAR_RQCMDARG,
    "Bytes that all files of Shale may take together. Near it inserts and updates fail; reads and "
    "deletes go on. 0: no limit",
    check_space_limit, set_space_limit, 0, 0, kMostSpace, 0);
static MYSQL_SYSVAR_ENUM(
    durability, settings::globals.durability, PLUGIN_VAR_RQCMDARG,
    "When commits are durable. full: before they return; periodic: within a second; none: when the "
    "system writes. A crash of the server alone loses nothing in any case",
    nullptr, nullptr, settings::kFull, &durability_values);
static MYSQL_SYSVAR_STR(
    compression, settings::globals.compression, PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC,
    "Codec of tables made without COMPRESSION: auto, none, lz4, zstd:1 to zstd:19, zlib:1 to "
    "zlib:9",
    check_compression, nullptr, "auto");
static MYSQL_SYSVAR_BOOL(wait_idle, wait_idle, PLUGIN_VAR_RQCMDARG,
                         "Set to ON: flushes memtables and waits until no compaction is due",
                         nullptr, set_wait_idle, false);
static MYSQL_SYSVAR_STR(checkpoint, checkpoint,
                        PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_MEMALLOC | PLUGIN_VAR_NOCMDOPT,
                        "Set to the path of a folder that does not exist: makes a copy of all "
                        "tables there by hard links, while others write",
                        check_checkpoint, nullptr, "");
static MYSQL_SYSVAR_ULONG(ft_min_token_size, settings::globals.min_token_size,
                          PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                          "Words with fewer characters are not in FULLTEXT indexes that are made",
                          nullptr, nullptr, 3, 1, 16, 0);
static MYSQL_SYSVAR_ULONG(ft_max_token_size, settings::globals.max_token_size,
                          PLUGIN_VAR_RQCMDARG | PLUGIN_VAR_READONLY,
                          "Words with more characters are not in FULLTEXT indexes that are made",
                          nullptr, nullptr, 84, 10, 84, 0);
st_mysql_sys_var *system_variables[] = {MYSQL_SYSVAR(memory),
                                        MYSQL_SYSVAR(space_limit),
                                        MYSQL_SYSVAR(durability),
                                        MYSQL_SYSVAR(compression),
                                        settings::lock_wait_variable(),
                                        settings::bulk_load_variable(),
                                        MYSQL_SYSVAR(wait_idle),
                                        settings::sort_memory_variable(),
                                        settings::alter_rest_variable(),
                                        MYSQL_SYSVAR(ft_min_token_size),
                                        MYSQL_SYSVAR(ft_max_token_size),
                                        settings::stopword_variable(),
                                        user_stopword_table_variable(),
                                        server_stopword_table_variable(),
                                        MYSQL_SYSVAR(checkpoint),
                                        settings::import_from_variable(),
                                        nullptr};

}  // namespace shale_sql
