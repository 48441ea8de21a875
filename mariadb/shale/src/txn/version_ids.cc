// How SHALE's transactions get InnoDB's ids.

#include "txn/version_ids.h"

#include "server.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

namespace shale_sql {

namespace {

// The server allows no such table in `mysql`.
const LEX_CSTRING kSchema = {STRING_WITH_LEN("shale_system")};
const LEX_CSTRING kTable = {STRING_WITH_LEN("versions")};
constexpr const char *kName = "shale_system.versions";

constexpr const char *kSettings =
    "SET sql_log_bin = 0, sql_mode = 'NO_ENGINE_SUBSTITUTION', enforce_storage_engine = NULL, "
    "lock_wait_timeout = 10";
constexpr const char *kMakeSchema = "CREATE DATABASE IF NOT EXISTS shale_system";
constexpr const char *kMake =
    "CREATE TABLE IF NOT EXISTS shale_system.versions (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, "
    "row_start BIGINT UNSIGNED GENERATED ALWAYS AS ROW START INVISIBLE, "
    "row_end BIGINT UNSIGNED GENERATED ALWAYS AS ROW END INVISIBLE, "
    "PERIOD FOR SYSTEM_TIME (row_start, row_end)) WITH SYSTEM VERSIONING ENGINE=InnoDB "
    "COMMENT='By its rows, transactions of SHALE get ids of versions; keep it'";

// It waits for nobody who has all tables locked. A restored server may have the definition without
// InnoDB's table, which has nothing to be lost.
constexpr const char *kLook = "SELECT id FROM shale_system.versions LIMIT 0";
constexpr const char *kDrop = "DROP TABLE IF EXISTS shale_system.versions";

std::atomic<bool> is_sound{false};  // it was opened by this server

// No two transactions have the same, also those that were prepared before the server started.
uint64_t next_key() {
  static std::atomic<uint64_t> last{0};
  const uint64_t now = my_hrtime().val << 8;
  uint64_t was = last.load(), is;
  do {
    is = std::max(was + 1, now);
  } while (!last.compare_exchange_weak(was, is));
  return is;
}

Error refused_by_innodb(int error) {
  const bool is_told = error == HA_ERR_LOCK_DEADLOCK || error == HA_ERR_LOCK_WAIT_TIMEOUT ||
                       error == HA_ERR_ABORTED_BY_USER || error == HA_ERR_RECORD_FILE_FULL;
  return Error(is_told ? error : HA_ERR_GENERIC,
               "the transaction got no id for versions: InnoDB refused a row of " +
                   std::string(kName) + " with error " + std::to_string(error));
}

// A row that comes and goes.
Error write_row(TABLE *table) {
  handler *file = table->file;
  table->use_all_columns();
  restore_record(table, s->default_values);
  table->field[0]->store(static_cast<longlong>(next_key()), true);
  table->vers_update_fields();
  int error = file->ha_write_row(table->record[0]);
  if (error != 0) return refused_by_innodb(error);
  file->position(table->record[0]);
  if ((error = file->ha_rnd_init(false)) == 0) {
    error = file->ha_rnd_pos(table->record[0], file->ref);
    if (error == 0) error = file->ha_delete_row(table->record[0]);
    file->ha_rnd_end();
  }
  return error == 0 ? Error() : refused_by_innodb(error);
}

Error run_statements() {
  MYSQL *connection = mysql_init(nullptr);
  if (connection == nullptr) return Error(HA_ERR_OUT_OF_MEM, "no memory for a connection");
  Error error;
  if (mysql_real_connect_local(connection) == nullptr) {
    error = Error(HA_ERR_GENERIC, "no connection to this server");
  }
  const auto run = [connection](const char *statement) {
    if (mysql_real_query(connection, statement, strlen(statement)) != 0) return false;
    mysql_free_result(mysql_store_result(connection));
    return true;
  };
  bool done = !error && run(kSettings);
  if (done && !run(kLook)) {
    const bool is_lost = mysql_errno(connection) == ER_NO_SUCH_TABLE_IN_ENGINE;
    done = (!is_lost || run(kDrop)) && run(kMakeSchema) && run(kMake) && run(kLook);
  }
  if (!error && !done) {
    error = Error(HA_ERR_GENERIC, std::string("table ") + kName +
                                      ", which tables with versions by transaction id need, could "
                                      "not be made: " + mysql_error(connection));
  }
  mysql_close(connection);
  return error;
}

// Makes the table, unless it is there and sound.
Error make_version_table() {
  Error error;
  // In a thread of its own the connection is none of the user's, whose settings and transaction
  // stay what they are.
  std::thread maker([&error] {
    if (my_thread_init()) {
      error = Error(HA_ERR_OUT_OF_MEM, "no memory for a thread");
      return;
    }
    error = run_statements();
    my_thread_end();
  });
  maker.join();
  if (!error) is_sound = true;
  return error;
}

}  // namespace

struct VersionIds::Held {
  TABLE_LIST list;
  Open_tables_backup outer;
  Open_tables_state own;

  Error open(THD *thd) {
    // It is looked for before: to open one that is not there would undo the statement.
    if (!is_sound || !ha_table_exists(thd, &kSchema, &kTable)) {
      if (Error error = make_version_table()) return error;
    }
    list.init_one_table(&kSchema, &kTable, nullptr, TL_WRITE);
    // Temporary tables stay the connection's.
    All_tmp_tables_list *temporary = thd->temporary_tables;
    // So that its lock is not of the memory of a function's statement, which goes before it.
    const ulonglong bits = thd->variables.option_bits;
    thd->variables.option_bits |= OPTION_TABLE_LOCK;
    const bool is_open = open_log_table(thd, &list, &outer) != nullptr;
    thd->variables.option_bits = bits;
    if (is_open) return 0;
    thd->temporary_tables = temporary;
    return Error(HA_ERR_GENERIC, std::string("the transaction got no id for versions: ") + kName +
                                     " could not be opened");
  }
  bool takes_part(THD *thd) const {
    return thd->ha_data[list.table->file->ht->slot].ha_info[0].is_started();
  }
  void close(THD *thd) {
    // A replica's statement goes on with its temporary tables.
    rpl_group_info *group = thd->rgi_slave;
    thd->rgi_slave = nullptr;
    close_log_table(thd, &outer);
    thd->rgi_slave = group;
  }
  // The statement goes on with its own tables.
  void set_aside(THD *thd) {
    own.set_open_tables_state(thd);
    thd->set_open_tables_state(&outer);
  }
  void take_back(THD *thd) {
    outer.set_open_tables_state(thd);
    thd->set_open_tables_state(&own);
  }
};

VersionIds::VersionIds() = default;
VersionIds::~VersionIds() = default;

Error VersionIds::get(THD *thd, size_t savepoints, uint64_t *id) {
  ulonglong begin = id_, end = 0;
  if (!is_of_statement_) {
    if (Error error = take_part(thd, &begin, &end)) return error;
    if (id_ == 0) savepoints_ = savepoints;
    id_ = begin;
    is_of_statement_ = true;
  }
  *id = id_;
  return 0;
}

Error VersionIds::end_id(THD *thd, ulonglong *begin, ulonglong *end) {
  *end = 0;
  return id_ != 0 ? take_part(thd, begin, end) : Error();
}

namespace {

// Writes the row, and asks InnoDB for the numbers of the transaction.
Error ask_innodb(THD *thd, TABLE *table, ulonglong *begin, ulonglong *end) {
  handlerton *innodb = table->file->ht;
  if (innodb->db_type != DB_TYPE_INNODB) {
    return Error(HA_ERR_GENERIC, std::string(kName) + " is no table of InnoDB's");
  }
  if (Error error = write_row(table)) return error;
  *end = innodb->prepare_commit_versioned(thd, begin);
  return *begin == 0 || *end == 0 ? refused_by_innodb(HA_ERR_WRONG_COMMAND) : Error();
}

// Without checks InnoDB would insert into the table, which is empty, with all of it locked.
struct WithChecks {
  explicit WithChecks(THD *thd) : thd_(thd), was_(thd->variables.option_bits) {
    thd->variables.option_bits &=
        ~(OPTION_NO_FOREIGN_KEY_CHECKS | OPTION_RELAXED_UNIQUE_CHECKS);
  }
  ~WithChecks() { thd_->variables.option_bits = was_; }
  THD *thd_;
  ulonglong was_;
};

}  // namespace

Error VersionIds::take_part(THD *thd, ulonglong *begin, ulonglong *end) {
  // Gone back to a savepoint of before its part, in a function, InnoDB has no part any more, and no
  // row has its id.
  if (held_ && !held_->takes_part(thd)) end_transaction(thd);
  std::unique_ptr<Held> mine = std::move(held_);
  Error error;
  {
    const WithChecks checks(thd);
    if (mine) {
      mine->take_back(thd);
    } else {
      mine = std::make_unique<Held>();
      if (Error refused = mine->open(thd)) return refused;
    }
    error = ask_innodb(thd, mine->list.table, begin, end);
  }
  if (!error && id_ != 0 && id_ != *begin) {
    error = Error(HA_ERR_GENERIC, "rows of this transaction have an id that InnoDB has undone");
  }
  if (thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN)) {
    mine->close(thd);
  } else {
    // InnoDB reads the settings of the statement again.
    mine->list.table->file->info(HA_STATUS_TIME | HA_STATUS_NO_LOCK);
    mine->set_aside(thd);
    held_ = std::move(mine);
  }
  return error;
}

void VersionIds::end_transaction(THD *thd) {
  id_ = 0;
  is_of_statement_ = false;
  if (!held_) return;
  Open_tables_state now;
  now.set_open_tables_state(thd);
  thd->set_open_tables_state(&held_->own);
  held_->close(thd);
  thd->set_open_tables_state(&now);
  held_.reset();
}

}  // namespace shale_sql
