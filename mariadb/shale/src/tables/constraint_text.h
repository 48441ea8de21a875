// Foreign keys in the server's words: names of tables and columns, and clauses of SQL.
#pragma once

#include "codec/table_def.h"
#include "engine/foreign_keys.h"

#include <string>
#include <vector>

class Field;

namespace shale_sql {

// Of columns, letter case aside.
bool same_name(const std::string &one, const std::string &other);
std::string quoted_name(const std::string &name);
// Of a table's columns, or of its share's; nullptr: there is none.
Field *field_named(Field **fields, const std::string &name);
// Separated by commas.
std::string list_of(const std::vector<std::string> &columns, bool quotes);

// The path of a table by its name, and back.
std::string path_of(const char *database, const char *table);
void names_of(const std::string &path, std::string *database, std::string *table);
// `database`.`table`, as the server's messages have it.
std::string full_name_of(const std::string &path);

// As in SHOW CREATE TABLE: CONSTRAINT `name` FOREIGN KEY ... with its actions. A parent in another
// database than the child is named with it.
std::string clause_of(const ForeignKey &key);
// The child's name and the clause, as messages of refused rows have them.
std::string told_of(const ForeignKey &key);

// The first index, the primary key first, that begins with the columns, whole and in order;
// nullptr: there is none.
const IndexDef *index_with(const TableDef &def, const std::vector<std::string> &columns);

}  // namespace shale_sql
