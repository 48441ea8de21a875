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

constexpr const char *kStatements[] = {
    "SET sql_log_bin = 0, sql_mode = 'NO_ENGINE_SUBSTITUTION', enforce_storage_engine = NULL",
    "CREATE DATABASE IF NOT EXISTS shale_system",
    "CREATE TABLE IF NOT EXISTS shale_system.versions (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, "
    "row_start BIGINT UNSIGNED GENERATED ALWAYS AS ROW START INVISIBLE, "
    "row_end BIGINT UNSIGNED GENERATED ALWAYS AS ROW END INVISIBLE, "
    "PERIOD FOR SYSTEM_TIME (row_start, row_end)) WITH SYSTEM VERSIONING ENGINE=InnoDB "
    "COMMENT='By its rows, transactions of SHALE get ids of versions; keep it'",
};

std::atomic<bool> is_there{false};

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
  return Error(HA_ERR_GENERIC, "the transaction got no id for versions: InnoDB refused a row of " +
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
  for (const char *statement : kStatements) {
    if (error) break;
    if (mysql_real_query(connection, statement, strlen(statement)) == 0) continue;
    error = Error(HA_ERR_GENERIC, std::string("table ") + kName +
                                      ", which tables with versions by transaction id need, could "
                                      "not be made: " + mysql_error(connection));
  }
  mysql_close(connection);
  return error;
}

// Makes the table unless it is there.
Error make_version_table() {
  if (is_there) return 0;
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
  if (!error) is_there = true;
  return error;
}

}  // namespace

struct VersionIds::Held {
  TABLE_LIST list;
  Open_tables_backup outer;
  Open_tables_state own;

  Error open(THD *thd) {
    // It is looked for before: to open one that is not there would undo the statement.
    if (is_there && !ha_table_exists(thd, &kSchema, &kTable)) is_there = false;
    if (Error error = make_version_table()) return error;
    list.init_one_table(&kSchema, &kTable, nullptr, TL_WRITE);
    // Temporary tables stay the connection's.
    All_tmp_tables_list *temporary = thd->temporary_tables;
    if (open_log_table(thd, &list, &outer) != nullptr) return 0;
    thd->temporary_tables = temporary;
    return Error(HA_ERR_GENERIC, std::string("the transaction got no id for versions: ") + kName +
                                     " could not be opened");
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

Error VersionIds::get(THD *thd, uint64_t *id) {
  if (id_ == 0) {
    ulonglong begin = 0, end = 0;
    if (Error error = take_part(thd, &begin, &end)) return error;
    id_ = begin;
    is_used_ = true;
  }
  *id = id_;
  return 0;
}

Error VersionIds::end_id(THD *thd, ulonglong *begin, ulonglong *end) {
  *end = 0;
  return is_used_ ? take_part(thd, begin, end) : Error();
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

Error VersionIds::take_part(THD *thd, ulonglong *begin, ulonglong *end) {
  const WithChecks checks(thd);
  std::unique_ptr<Held> mine = std::move(held_);
  TABLE *table = nullptr;
  if (mine) {
    mine->take_back(thd);
    table = mine->list.table;
  } else {
    mine = std::make_unique<Held>();
    if (Error error = mine->open(thd)) return error;
    table = mine->list.table;
  }
  Error error;
  handlerton *innodb = table->file->ht;
  if (innodb->db_type == DB_TYPE_INNODB) {
    error = write_row(table);
    if (!error) *end = innodb->prepare_commit_versioned(thd, begin);
    if (!error && (*begin == 0 || *end == 0)) error = refused_by_innodb(HA_ERR_WRONG_COMMAND);
  } else {
    error = Error(HA_ERR_GENERIC, std::string(kName) + " is no table of InnoDB's");
  }
  if (thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN)) {
    close_log_table(thd, &mine->outer);
  } else {
    mine->set_aside(thd);
    held_ = std::move(mine);
  }
  return error;
}

void VersionIds::end_transaction(THD *thd) {
  id_ = 0;
  is_used_ = false;
  if (!held_) return;
  Open_tables_state now;
  now.set_open_tables_state(thd);
  thd->set_open_tables_state(&held_->own);
  close_log_table(thd, &held_->outer);
  thd->set_open_tables_state(&now);
  held_.reset();
}

}  // namespace shale_sql
