// What ALTER TABLE in place makes of foreign keys, on both sides: columns get other names, and what
// a foreign key needs may not go.
#pragma once

#include "codec/table_def.h"
#include "ddl/constraints.h"
#include "engine/foreign_keys.h"

#include <string>

class THD;
class Alter_info;

namespace shale_sql {

struct AlteredTable {
  THD *thd;
  const Alter_info *statement;
  std::string path;
  const TableDef *was, *is;
};

// Whether a column or an index goes that one of them needs; the error is told then. Those of
// `constraints.gone` need nothing any more.
bool refuses_to_alter(const AlteredTable &table, const Constraints &constraints);

// Whether a column of one of them gets another type, or another answer to NULL: the server has
// rules for that, which it asks for when it copies the table.
bool changes_columns_of_keys(const AlteredTable &table);

// With the names that columns get.
ForeignKeys::Change change_of(const AlteredTable &table, const Constraints &constraints);

}  // namespace shale_sql
