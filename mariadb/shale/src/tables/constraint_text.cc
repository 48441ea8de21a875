// Names and clauses of foreign keys.

#include "tables/constraint_text.h"

#include "server.h"

namespace shale_sql {

namespace {

std::string action_of(const char *event, ForeignAction action) {
  switch (action) {
    case ForeignAction::kNoAction:
      return std::string(" ON ") + event + " NO ACTION";
    case ForeignAction::kCascade:
      return std::string(" ON ") + event + " CASCADE";
    case ForeignAction::kSetNull:
      return std::string(" ON ") + event + " SET NULL";
    // InnoDB does not show these two.
    case ForeignAction::kRestrict:
    case ForeignAction::kSetDefault:
      break;
  }
  return {};
}

}  // namespace

bool same_name(const std::string &one, const std::string &other) {
  return my_strcasecmp(system_charset_info, one.c_str(), other.c_str()) == 0;
}

Field *field_named(Field **fields, const std::string &name) {
  for (; *fields != nullptr; fields++) {
    if (same_name((*fields)->field_name.str, name)) return *fields;
  }
  return nullptr;
}

// By the connection's SQL mode; where names need none it may have none.
std::string quoted_name(const std::string &name) {
  THD *thd = current_thd;
  const int asked =
      thd == nullptr ? '`' : get_quote_char_for_identifier(thd, name.data(), name.size());
  if (asked == EOF) return name;
  const char quote = static_cast<char>(asked);
  std::string out(1, quote);
  for (char letter : name) {
    out += letter;
    if (letter == quote) out += letter;
  }
  return out + quote;
}

std::string list_of(const std::vector<std::string> &columns, bool quotes) {
  std::string out;
  for (const std::string &column : columns) {
    if (!out.empty()) out += ", ";
    out += quotes ? quoted_name(column) : column;
  }
  return out;
}

void names_of(const std::string &path, std::string *database, std::string *table) {
  const size_t last = path.rfind(FN_LIBCHAR);
  const size_t first = path.rfind(FN_LIBCHAR, last - 1);
  char name[NAME_LEN + 1];
  const std::string folder = path.substr(first + 1, last - first - 1);
  database->assign(name, filename_to_tablename(folder.c_str(), name, sizeof(name)));
  table->assign(name, filename_to_tablename(path.c_str() + last + 1, name, sizeof(name)));
}

std::string path_of(const char *database, const char *table) {
  char path[FN_REFLEN + 1];
  return {path, build_table_filename(path, sizeof(path) - 1, database, table, "", 0)};
}

std::string full_name_of(const std::string &path) {
  std::string database, table;
  names_of(path, &database, &table);
  return quoted_name(database) + '.' + quoted_name(table);
}

std::string clause_of(const ForeignKey &key) {
  std::string database, table, other_database, parent;
  names_of(key.child, &database, &table);
  names_of(key.parent, &other_database, &parent);
  return " CONSTRAINT " + quoted_name(key.name) + " FOREIGN KEY (" + list_of(key.columns, true) +
         ") REFERENCES " +
         (database == other_database ? quoted_name(parent) : full_name_of(key.parent)) + " (" +
         list_of(key.parent_columns, true) + ")" + action_of("DELETE", key.on_delete) +
         action_of("UPDATE", key.on_update);
}

std::string told_of(const ForeignKey &key) {
  return full_name_of(key.child) + "," + clause_of(key);
}

const IndexDef *index_with(const TableDef &def, const std::vector<std::string> &columns) {
  for (const IndexDef &index : def.indexes) {
    if (index.parts.size() < columns.size()) continue;
    size_t place = 0;
    while (place < columns.size() && index.parts[place].whole &&
           same_name(index.parts[place].column, columns[place])) {
      place++;
    }
    if (place == columns.size()) return &index;
  }
  return nullptr;
}

}  // namespace shale_sql
