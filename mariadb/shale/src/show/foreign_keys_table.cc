// SHALE_FOREIGN_KEYS, out of the catalog.

#include "show/foreign_keys_table.h"

#include "server.h"

#include "engine/engine.h"
#include "show/table_row.h"
#include "tables/constraint_text.h"

namespace shale_sql {

namespace {

using namespace Show;

ST_FIELD_INFO columns[] = {
    Column("CONSTRAINT_SCHEMA", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("CONSTRAINT_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("TABLE_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("COLUMNS", Varchar(FN_REFLEN), NOT_NULL),
    Column("INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("REFERENCED_TABLE_SCHEMA", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("REFERENCED_TABLE_NAME", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("REFERENCED_COLUMNS", Varchar(FN_REFLEN), NOT_NULL),
    Column("REFERENCED_INDEX_NAME", Varchar(NAME_CHAR_LEN), NULLABLE),
    Column("DELETE_RULE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    Column("UPDATE_RULE", Varchar(NAME_CHAR_LEN), NOT_NULL),
    CEnd()};

const char *rule_of(ForeignAction action) {
  switch (action) {
    case ForeignAction::kCascade:
      return "CASCADE";
    case ForeignAction::kSetNull:
      return "SET NULL";
    case ForeignAction::kNoAction:
      return "NO ACTION";
    case ForeignAction::kRestrict:
    case ForeignAction::kSetDefault:
      break;
  }
  return "RESTRICT";
}

// The index that a side is found by; empty: there is none, or no table.
std::string index_of_side(const std::string &path, const std::vector<std::string> &names) {
  TableDef def;
  if (engine().catalog.read(path, &def)) return {};
  const IndexDef *index = index_with(def, names);
  if (index == nullptr) return {};
  return index == def.indexes.data() ? "PRIMARY" : index->name;
}

int fill(THD *thd, TABLE_LIST *tables, COND *) {
  if (!may_see(thd)) return 0;
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().all()) {
    std::string schema, table, other_schema, other;
    names_of(key->child, &schema, &table);
    names_of(key->parent, &other_schema, &other);
    const std::string index = index_of_side(key->child, key->columns);
    const std::string other_index = index_of_side(key->parent, key->parent_columns);
    Row row(tables->table);
    row.text(schema).text(key->name).text(table).text(list_of(key->columns, false));
    row.text(index, index.empty()).text(other_schema).text(other);
    row.text(list_of(key->parent_columns, false)).text(other_index, other_index.empty());
    row.text(rule_of(key->on_delete)).text(rule_of(key->on_update));
    if (row.store(thd) != 0) return 1;
  }
  return 0;
}

}  // namespace

int start_foreign_keys(void *place) { return start_table(place, columns, fill); }

}  // namespace shale_sql
