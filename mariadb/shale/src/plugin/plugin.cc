// What the server is told of the plugin, and its start and end.

#include "backup/checkpoint.h"
#include "ddl/ddl_recovery.h"
#include "ddl/options.h"
#include "engine/table_files.h"
#include "handler/ha_shale.h"
#include "plugin/hton.h"
#include "plugin/start.h"
#include "plugin/system_variables.h"
#include "show/foreign_keys_table.h"
#include "show/status.h"
#include "show/status_variables.h"
#include "show/transactions_table.h"
#include "show/trees_table.h"
#include "txn/prepared.h"

namespace {

handler *create_handler(handlerton *hton, TABLE_SHARE *share, MEM_ROOT *mem_root) {
  return new (mem_root) ha_shale(hton, share);
}

int start(void *place) {
  auto *hton = static_cast<handlerton *>(place);
  hton->create = create_handler;
  hton->db_type = DB_TYPE_AUTOASSIGN;
  hton->flags = HTON_CLOSE_CURSORS_AT_COMMIT | HTON_TRUNCATE_REQUIRES_EXCLUSIVE_USE |
                HTON_SUPPORTS_EXTENDED_KEYS | HTON_NATIVE_SYS_VERSIONING;
  static const char *no_files[] = {nullptr};
  hton->tablefile_extensions = no_files;
  hton->drop_database = [](handlerton *, char *folder) {
    shale_sql::delete_moved_files(folder);
    shale_sql::drop_lost_tables(current_thd, folder);
  };
  shale_sql::fill_transactions(hton);
  shale_sql::fill_prepared(hton);
  shale_sql::fill_options(hton);
  shale_sql::fill_recovery(hton);
  shale_sql::fill_status(hton);
  shale_sql::fill_backup(hton);
  return shale_sql::open_engine(hton) ? 0 : 1;
}

int stop(void *) {
  shale_sql::close_engine();
  return 0;
}

st_mysql_storage_engine storage_engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};

st_mysql_information_schema information_schema = {MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

int stop_table(void *) { return 0; }

constexpr const char *kAuthors = "The Shale developers";
constexpr unsigned kVersion = 0x0001;
constexpr const char *kVersionText = "0.1";

constexpr st_maria_plugin information_table(const char *name, const char *words,
                                            int (*start_table)(void *)) {
  return {MYSQL_INFORMATION_SCHEMA_PLUGIN,
          &information_schema,
          name,
          kAuthors,
          words,
          PLUGIN_LICENSE_GPL,
          start_table,
          stop_table,
          kVersion,
          nullptr,
          nullptr,
          kVersionText,
          MariaDB_PLUGIN_MATURITY_EXPERIMENTAL};
}

}  // namespace

maria_declare_plugin(shale){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &storage_engine,
    "SHALE",
    kAuthors,
    "Log-structured merge trees: row locks, transactions, crash-safe, compressed",
    PLUGIN_LICENSE_GPL,
    start,
    stop,
    kVersion,
    shale_sql::status_variables,
    shale_sql::system_variables,
    kVersionText,
    MariaDB_PLUGIN_MATURITY_EXPERIMENTAL,
},
    information_table("SHALE_TRANSACTIONS",
                      "Transactions under way: what they have locked, and for whom they wait",
                      shale_sql::start_transactions),
    information_table("SHALE_LOCKS", "Locks that are held or waited for, 10,000 at most",
                      shale_sql::start_locks),
    information_table(
        "SHALE_TREES",
        "Tables and indexes: files, bytes before and after compression, work that is due",
        shale_sql::start_trees),
    information_table(
        "SHALE_LEVELS",
        "Levels of tables and indexes: files, bytes, and what compaction has done to them",
        shale_sql::start_levels),
    information_table("SHALE_FOREIGN_KEYS",
                      "Foreign keys: both tables, their columns, and the indexes that serve them",
                      shale_sql::start_foreign_keys) maria_declare_plugin_end;
