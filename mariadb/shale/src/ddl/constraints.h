// The foreign keys of a statement: taken from the server's list, checked as InnoDB checks them, and
// told as InnoDB tells them.
#pragma once

#include "codec/table_def.h"
#include "engine/foreign_keys.h"

#include <string>
#include <vector>

class THD;
class Alter_info;
struct TABLE;

namespace shale_sql {

enum class Made { kTable, kCopy, kInPlace };

// Where a table is made, or altered.
struct ConstraintTable {
  THD *thd;
  Made made;
  std::string path;      // of what is written; of a copy an intermediate one
  std::string known_as;  // the path that the statement means by the table's name
  TABLE *form;           // as it will be
  const TableDef *def;   // the same
  const Alter_info *statement;
  bool temporary;
};

struct Constraints {
  // Those of before that stay, for the path that is written, and those that go.
  ForeignKeys::List kept, gone;
  // Those that the statement adds. Their rows have to be compared (ForeignKey::unproven).
  ForeignKeys::List added;
};

// 0, or an error's number, after its warnings were pushed or the error itself.
int constraints_of(const ConstraintTable &table, Constraints *found);

// The columns, by their names of before, that may be NULL by the statement and could not; or the
// other way round.
std::vector<std::string> changing_null(const Alter_info *statement, bool to_null);
// Whether a column is among them, letter case aside.
bool is_named(const std::vector<std::string> &columns, const std::string &column);
// Whether a statement takes from the child what SET NULL would write; the error is told then.
bool takes_null(THD *thd, const Alter_info *statement, const ForeignKey &key);

// By which path others know a table that a statement writes at `path`: of a copy, that of the table
// that is altered.
std::string known_path(THD *thd, const std::string &path, const Alter_info *statement);

// Whether the children of a table, as the map has them now, can have one with this definition for
// their parent. `path`: by which they know it.
bool fits_children(const std::string &path, const TableDef &def);

}  // namespace shale_sql
