// The foreign keys of a statement: taken from the server's list, checked as InnoDB checks them, and
// told as InnoDB tells them.
#pragma once

#include "codec/table_def.h"
#include "engine/foreign_keys.h"

#include <string>

class THD;
class handler;
struct TABLE;

namespace shale_sql {

// Where a table's definition is made, or changed.
struct ConstraintTable {
  THD *thd;
  std::string path;
  TABLE *form;            // as it will be
  const TableDef *def;    // the same
  bool temporary;
};

// Those of a CREATE TABLE. 0, or an error's number, after its warnings were pushed.
int constraints_of(const ConstraintTable &table, ForeignKeys::List *found);

// The first index, the primary key first, that begins with the columns, whole and in order; nullptr:
// there is none.
const IndexDef *index_with(const TableDef &def, const std::vector<std::string> &columns);

// As in SHOW CREATE TABLE: CONSTRAINT `name` FOREIGN KEY ... with its actions. A parent in another
// database than the child is named with it.
std::string clause_of(const ForeignKey &key);
// `database`.`table`, as the server's messages have it.
std::string full_name_of(const std::string &path);

// The path of a table by its name.
std::string path_of(const char *database, const char *table);
void names_of(const std::string &path, std::string *database, std::string *table);

}  // namespace shale_sql
