// SHALE_TREES and SHALE_LEVELS, out of the engine's statistics, with the names of tables.

#include "show/trees_table.h"

#include "server.h"

#include "show/engine_report.h"
#include "show/table_row.h"
#include "tables/tree_owners.h"

namespace shale_sql {

namespace {

using namespace Show;

ST_FIELD_INFO tree_columns[] = {
    Column("TREE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("TABLE_NAME", Varchar(FN_REFLEN), NULLABLE),
    Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("FILES", Show::ULonglong(), NOT_NULL),
    Column("ENTRIES", Show::ULonglong(), NOT_NULL),
    Column("DELETES", Show::ULonglong(), NOT_NULL),
    Column("BYTES", Show::ULonglong(), NOT_NULL),
    Column("RAW_BYTES", Show::ULonglong(), NOT_NULL),
    Column("RATIO", Double(20), NOT_NULL),
    Column("CODEC", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("MEMORY_BYTES", Show::ULonglong(), NOT_NULL),
    Column("DEBT_BYTES", Show::ULonglong(), NOT_NULL),
    Column("SPACE_AMP", Double(20), NOT_NULL),
    CEnd()};

ST_FIELD_INFO level_columns[] = {
    Column("TREE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("TABLE_NAME", Varchar(FN_REFLEN), NULLABLE),
    Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("LEVEL", Show::ULonglong(), NOT_NULL),
    Column("FILES", Show::ULonglong(), NOT_NULL),
    Column("BYTES", Show::ULonglong(), NOT_NULL),
    Column("TARGET_BYTES", Show::ULonglong(), NOT_NULL),
    Column("ENTRIES", Show::ULonglong(), NOT_NULL),
    Column("DELETES", Show::ULonglong(), NOT_NULL),
    Column("RATIO", Double(20), NOT_NULL),
    Column("CODEC", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("JOBS", Show::ULonglong(), NOT_NULL),
    Column("MOVES", Show::ULonglong(), NOT_NULL),
    Column("READ_BYTES", Show::ULonglong(), NOT_NULL),
    Column("WRITTEN_BYTES", Show::ULonglong(), NOT_NULL),
    CEnd()};

int fill_trees(THD *thd, TABLE_LIST *tables, COND *) {
  if (!may_see(thd)) return 0;
  std::map<std::string, TreeOwner> owners = tree_owners();
  Json statistics = engine_statistics();
  for (const Json &tree : statistics["trees"].elements()) {
    uint64_t files = 0, entries = 0, deletes = 0, bytes = 0;
    double raw = 0;
    std::string codec;
    for (const Json &level : tree["levels"].elements()) {
      files += level["tables"].whole();
      entries += level["entries"].whole();
      deletes += level["deletes"].whole();
      bytes += level["bytes"].whole();
      double ratio = level["ratio"].number();
      raw += level["bytes"].number() * (ratio == 0 ? 1 : ratio);
      // That of the lowest level, which has most of it.
      if (level["tables"].whole() > 0) codec = level["codec"].text();
    }
    Row row(tables->table);
    row.owner(owners, tree["name"].text()).whole(files).whole(entries).whole(deletes);
    row.whole(bytes).whole(static_cast<uint64_t>(raw));
    row.real(bytes == 0 ? 0 : raw / static_cast<double>(bytes)).text(codec, codec.empty());
    row.number(tree["memtable_bytes"]).number(tree["debt_bytes"]);
    if (row.real(tree["space_amp"].number()).store(thd) != 0) return 1;
  }
  return 0;
}

int fill_levels(THD *thd, TABLE_LIST *tables, COND *) {
  if (!may_see(thd)) return 0;
  std::map<std::string, TreeOwner> owners = tree_owners();
  Json statistics = engine_statistics();
  for (const Json &tree : statistics["trees"].elements()) {
    for (const Json &level : tree["levels"].elements()) {
      Row row(tables->table);
      row.owner(owners, tree["name"].text()).number(level["level"]).number(level["tables"]);
      row.number(level["bytes"]).number(level["target_bytes"]).number(level["entries"]);
      row.number(level["deletes"]).real(level["ratio"].number()).text(level["codec"].text());
      row.number(level["jobs"]).number(level["moves"]).number(level["read_bytes"]);
      if (row.number(level["write_bytes"]).store(thd) != 0) return 1;
    }
  }
  return 0;
}

}  // namespace

int start_levels(void *place) { return start_table(place, level_columns, fill_levels); }
int start_trees(void *place) { return start_table(place, tree_columns, fill_trees); }

}  // namespace shale_sql
