// SHALE_TRANSACTIONS and SHALE_LOCKS, out of the engine's reports, with what connections do.

#include "show/transactions_table.h"

#include "server.h"

#include "show/engine_report.h"
#include "show/table_row.h"
#include "tables/in_words.h"
#include "tables/tree_owners.h"
#include "txn/trx.h"

namespace shale_sql {

namespace {

using namespace Show;

ST_FIELD_INFO transaction_columns[] = {
    Column("TRANSACTION_ID", Show::ULonglong(), NOT_NULL),
    Column("THREAD_ID", Show::ULonglong(), NULLABLE),
    Column("STATE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("AGE_SECONDS", Double(20), NOT_NULL),
    Column("ISOLATION", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("WRITES", Show::ULonglong(), NOT_NULL),
    Column("WRITE_BYTES", Show::ULonglong(), NOT_NULL),
    Column("KEYS_LOCKED", Show::ULonglong(), NOT_NULL),
    Column("TABLES_LOCKED", Varchar(FN_REFLEN), NOT_NULL),
    Column("WAITS_FOR", Varchar(FN_REFLEN), NULLABLE),
    Column("BLOCKERS", Varchar(FN_REFLEN), NULLABLE),
    Column("QUERY", Longtext(65535), NULLABLE),
    CEnd()};

ST_FIELD_INFO lock_columns[] = {
    Column("TRANSACTION_ID", Show::ULonglong(), NOT_NULL),
    Column("TREE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("TABLE_NAME", Varchar(FN_REFLEN), NULLABLE),
    Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("STATE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("LOCKED", Varchar(FN_REFLEN), NOT_NULL),
    CEnd()};

// A connection, by the number of its transaction.
struct Connection {
  uint64_t thread = 0;
  std::string query;
};
using Connections = std::map<uint64_t, Connection>;

// The connection's data is locked, so that its transaction does not go meanwhile.
my_bool add_connection(THD *thd, Connections *all) {
  mysql_mutex_lock(&thd->LOCK_thd_data);
  Trx *trx = Trx::find(thd);
  if (uint64_t number = trx == nullptr ? 0 : trx->number()) {
    Connection &one = (*all)[number];
    one.thread = thd->thread_id;
    if (thd->query() != nullptr) one.query.assign(thd->query(), thd->query_length());
  }
  mysql_mutex_unlock(&thd->LOCK_thd_data);
  return FALSE;
}

std::string joined(const Json &list, const std::map<std::string, TreeOwner> *owners) {
  std::string all;
  for (const Json &one : list.elements()) {
    if (!all.empty()) all += ", ";
    all += owners == nullptr ? one.text() : name_of(*owners, one.text());
  }
  return all;
}

int fill_transactions_table(THD *thd, TABLE_LIST *tables, COND *) {
  if (!may_see(thd)) return 0;
  std::map<std::string, TreeOwner> owners = tree_owners();
  Connections connections;
  server_threads.iterate(add_connection, &connections);
  Json all = engine_report(SHALE_REPORT_TRANSACTIONS);
  for (const Json &one : all.elements()) {
    auto connection = connections.find(one["id"].whole());
    bool known = connection != connections.end();
    bool waits = !one["waits_for"].is_null();
    Row row(tables->table);
    row.number(one["id"]);
    known ? row.whole(connection->second.thread) : row.none();
    row.text(!one["prepared"].is_null() ? "prepared" : waits ? "waiting" : "running");
    row.real(one["age_seconds"].number()).text(one["isolation"].text());
    row.number(one["writes"]).number(one["write_bytes"]).number(one["keys_locked"]);
    row.text(joined(one["trees"], &owners));
    row.text(in_words(one["waits_for"].text()), !waits);
    row.text(joined(one["blockers"], nullptr), one["blockers"].elements().empty());
    row.text(known ? connection->second.query : "", !known || connection->second.query.empty());
    if (row.store(thd) != 0) return 1;
  }
  return 0;
}

int fill_locks_table(THD *thd, TABLE_LIST *tables, COND *) {
  if (!may_see(thd)) return 0;
  std::map<std::string, TreeOwner> owners = tree_owners();
  Json all = engine_report(SHALE_REPORT_LOCKS);
  for (const Json &one : all.elements()) {
    // The tree has columns of its own.
    std::string text = one["text"].text();
    text.resize(std::min(text.size(), text.rfind(" of tree `")));
    Row row(tables->table);
    row.number(one["transaction"]).owner(owners, one["tree"].text());
    row.text(one["waits"].text() == "true" ? "waited for" : "held").text(text);
    if (row.store(thd) != 0) return 1;
  }
  return 0;
}

}  // namespace

int start_transactions(void *place) {
  return start_table(place, transaction_columns, fill_transactions_table);
}

int start_locks(void *place) { return start_table(place, lock_columns, fill_locks_table); }

}  // namespace shale_sql
