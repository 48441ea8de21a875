// Foreign keys out of the server's list of a statement.

#include "ddl/constraints.h"

#include "server.h"

#include <sql_parse.h>
#include <table_cache.h>

#include "codec/key_shape.h"
#include "engine/engine.h"
#include "engine/errors.h"

#include <algorithm>

namespace shale_sql {

namespace {

constexpr const char *kAutomatic = "_ibfk_";

std::string quoted_name(const std::string &name) {
  std::string out(1, '`');
  for (char letter : name) {
    out += letter;
    if (letter == '`') out += letter;
  }
  return out + '`';
}

std::string list_of(const std::vector<std::string> &columns, bool quotes) {
  std::string out;
  for (const std::string &column : columns) {
    if (!out.empty()) out += ", ";
    out += quotes ? quoted_name(column) : column;
  }
  return out;
}

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

ForeignAction action_of(enum_fk_option option) {
  switch (option) {
    case FK_OPTION_CASCADE:
      return ForeignAction::kCascade;
    case FK_OPTION_SET_NULL:
      return ForeignAction::kSetNull;
    case FK_OPTION_NO_ACTION:
      return ForeignAction::kNoAction;
    case FK_OPTION_SET_DEFAULT:
      return ForeignAction::kSetDefault;
    default:
      return ForeignAction::kRestrict;
  }
}

bool same_name(const std::string &one, const std::string &other) {
  return my_strcasecmp(system_charset_info, one.c_str(), other.c_str()) == 0;
}

bool has_field(Field **fields, const std::string &column) {
  for (; *fields != nullptr; fields++) {
    if (same_name((*fields)->field_name.str, column)) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(const ConstraintTable &table) : table_(table) {
    names_of(table.path, &database_, &name_);
  }

  int run(ForeignKeys::List *found);

 private:
  void take(const Foreign_key &from, ForeignKey *key);
  int name_automatic(ForeignKey *key);
  int check(const ForeignKey &key);
  int check_columns(const ForeignKey &key);
  int check_parent(const ForeignKey &key, const TableDef &parent);
  int check_nulls(const ForeignKey &key);
  bool cascades_null(const ForeignKey &key, const TableDef &parent) const;
  int check_names(const std::vector<ForeignKey> &keys);
  bool has_column(const ForeignKey &key, const std::string &column) const;
  // Warning 150, then the number that becomes 1005.
  int refuse(const ForeignKey &key, const char *with, const std::string &why);
  bool checks() const {
    return (table_.thd->variables.option_bits & OPTION_NO_FOREIGN_KEY_CHECKS) == 0;
  }

  const ConstraintTable &table_;
  std::string database_, name_;
  unsigned long next_number_ = 1;
};

int Reader::refuse(const ForeignKey &key, const char *with, const std::string &why) {
  const std::string columns =
      key.columns.empty() ? std::string() : " (" + list_of(key.columns, false) + ")";
  // A temporary table's path has another name.
  const std::string name =
      quoted_name(table_.form->s->db.str) + '.' + quoted_name(table_.form->s->table_name.str);
  push_warning_printf(table_.thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN,
                      "Create  table %s %sforeign key%s constraint failed. %s", name.c_str(),
                      with, columns.c_str(), why.c_str());
  return HA_ERR_CANNOT_ADD_FOREIGN;
}

void Reader::take(const Foreign_key &from, ForeignKey *key) {
  key->child = table_.path;
  if (from.constraint_name.str != nullptr) key->name = from.constraint_name.str;
  const char *database = from.ref_db.str != nullptr ? from.ref_db.str : database_.c_str();
  key->parent = path_of(database, from.ref_table.str);
  // Iterators of the server's lists take lists that may change.
  List_iterator_fast<Key_part_spec> own(const_cast<List<Key_part_spec> &>(from.columns));
  while (const Key_part_spec *column = own++) key->columns.push_back(column->field_name.str);
  List_iterator_fast<Key_part_spec> other(const_cast<List<Key_part_spec> &>(from.ref_columns));
  while (const Key_part_spec *column = other++) {
    key->parent_columns.push_back(column->field_name.str);
  }
  // Those of the same names, if the statement names none.
  if (key->parent_columns.empty()) key->parent_columns = key->columns;
  key->on_delete = action_of(from.delete_opt);
  key->on_update = action_of(from.update_opt);
}

int Reader::name_automatic(ForeignKey *key) {
  if (!key->name.empty()) return 0;
  key->name = name_ + kAutomatic + std::to_string(next_number_++);
  const LEX_CSTRING name = {key->name.c_str(), key->name.size()};
  // Pushes 1059.
  return check_ident_length(&name) ? HA_ERR_INTERNAL_ERROR : 0;
}

bool Reader::has_column(const ForeignKey &key, const std::string &column) const {
  if (key.parent == table_.path) return has_field(table_.form->field, column);
  TABLE_LIST parent;
  std::string database, name;
  names_of(key.parent, &database, &name);
  const LEX_CSTRING db = {database.c_str(), database.size()}, table = {name.c_str(), name.size()};
  parent.init_one_table(&db, &table, nullptr, TL_READ);
  MDL_REQUEST_INIT(&parent.mdl_request, MDL_key::TABLE, database.c_str(), name.c_str(),
                   MDL_SHARED_READ, MDL_STATEMENT);
  if (table_.thd->mdl_context.acquire_lock(&parent.mdl_request,
                                           table_.thd->variables.lock_wait_timeout)) {
    return true;
  }
  TABLE_SHARE *share = tdc_acquire_share(table_.thd, &parent, GTS_TABLE);
  if (share == nullptr) return true;
  const bool found = has_field(share->field, column);
  tdc_release_share(share);
  return found;
}

// As InnoDB's checks go, one after the other.
int Reader::check_columns(const ForeignKey &key) {
  if (index_with(*table_.def, key.columns) != nullptr) return 0;
  return refuse(key, "with ", "There is no index in table " + full_name_of(table_.path) +
                                  " where the columns appear as the first columns.");
}

int Reader::check_parent(const ForeignKey &key, const TableDef &parent) {
  for (const std::string &column : key.parent_columns) {
    if (!has_column(key, column)) return refuse(key, "", "Column " + column + " was not found.");
  }
  const IndexDef *own = index_with(*table_.def, key.columns);
  bool has_prefix = false;
  std::string mismatch;
  for (const IndexDef &index : parent.indexes) {
    if (index.parts.size() < key.parent_columns.size()) continue;
    bool whole = true, named = true;
    for (size_t i = 0; i < key.parent_columns.size() && named; i++) {
      named = same_name(index.parts[i].column, key.parent_columns[i]);
      whole = whole && index.parts[i].whole;
    }
    if (!named) continue;
    if (!whole) {
      has_prefix = true;
      continue;
    }
    size_t place = 0;
    while (own != nullptr && place < key.columns.size() &&
           may_reference(own->parts[place], index.parts[place])) {
      place++;
    }
    if (own == nullptr || place == key.columns.size()) return 0;
    mismatch = "Field type or character set for column '" + key.columns[place] +
               "' does not match referenced column '" + key.parent_columns[place] + "'.";
  }
  if (!mismatch.empty()) return refuse(key, "with ", mismatch);
  return refuse(key, "with ", has_prefix
                                  ? "There is only prefix index in the referenced table where the"
                                    " referenced columns appear as the first columns."
                                  : "There is no index in the referenced table where the"
                                    " referenced columns appear as the first columns.");
}

int Reader::check(const ForeignKey &key) {
  if (checks()) {
    const bool to_itself = key.parent == table_.path;
    TableDef other;
    const TableDef *parent = to_itself ? table_.def : &other;
    const Error read = to_itself ? Error() : engine().catalog.read(key.parent, &other);
    if (read && read != HA_ERR_NO_SUCH_TABLE) return read.number();
    if (read || parent->temporary) {
      return refuse(key, "with ", "Referenced table " + full_name_of(key.parent) +
                                      " not found in the data dictionary.");
    }
    if (int error = check_parent(key, *parent)) return error;
    if (int error = check_columns(key)) return error;
    if (cascades_null(key, *parent)) return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  return check_nulls(key);
}

// Under a strict mode InnoDB refuses, without a reason, an ON UPDATE CASCADE from a column that may
// be NULL to one that may not.
bool Reader::cascades_null(const ForeignKey &key, const TableDef &parent) const {
  if (key.on_update != ForeignAction::kCascade || !table_.thd->is_strict_mode()) return false;
  const IndexDef *own = index_with(*table_.def, key.columns);
  const IndexDef *other = index_with(parent, key.parent_columns);
  for (size_t i = 0; own != nullptr && other != nullptr && i < key.columns.size(); i++) {
    if (other->parts[i].nullable && !own->parts[i].nullable) return true;
  }
  return false;
}

// What SET NULL would write.
int Reader::check_nulls(const ForeignKey &key) {
  const bool sets_null = key.on_delete == ForeignAction::kSetNull ||
                         key.on_update == ForeignAction::kSetNull;
  if (!sets_null) return 0;
  for (const std::string &column : key.columns) {
    for (Field **field = table_.form->field; *field != nullptr; field++) {
      if ((*field)->real_maybe_null() || !same_name((*field)->field_name.str, column)) continue;
      return refuse(key, "with ", "You have defined a SET NULL condition but column '" + column +
                                      "' is defined as NOT NULL.");
    }
  }
  return 0;
}

// One name twice in a statement; or, letter case aside, in the database.
int Reader::check_names(const std::vector<ForeignKey> &keys) {
  std::vector<const ForeignKey *> sorted;
  for (const ForeignKey &key : keys) sorted.push_back(&key);
  std::sort(sorted.begin(), sorted.end(),
            [](const ForeignKey *one, const ForeignKey *other) { return one->name < other->name; });
  for (size_t i = 1; i < sorted.size(); i++) {
    if (sorted[i]->name == sorted[i - 1]->name) return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  ForeignKeys::Change change;
  for (const ForeignKey *key : sorted) {
    change.come.push_back(std::make_shared<const ForeignKey>(*key));
    if (engine().catalog.foreign_keys().taken_by(change).empty()) continue;
    push_warning_printf(table_.thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_FOUND_DUPP_KEY,
                        "CREATE or ALTER TABLE %s failed: duplicate name,%s",
                        full_name_of(table_.path).c_str(), clause_of(*key).c_str());
    return HA_ERR_FOUND_DUPP_KEY;
  }
  return 0;
}

int Reader::run(ForeignKeys::List *found) {
  std::vector<ForeignKey> keys;
  List_iterator_fast<Key> all(table_.thd->lex->alter_info.key_list);
  while (const Key *one = all++) {
    if (one->type != Key::FOREIGN_KEY) continue;
    ForeignKey key;
    if (table_.temporary) {
      return refuse(key, "with ", "Temporary tables can't have foreign key constraints.");
    }
    take(static_cast<const Foreign_key &>(*one), &key);
    if (int error = name_automatic(&key)) return error;
    if (int error = check(key)) return error;
    keys.push_back(std::move(key));
  }
  if (int error = check_names(keys)) return error;
  for (ForeignKey &key : keys) {
    found->push_back(std::make_shared<const ForeignKey>(std::move(key)));
  }
  return 0;
}

}  // namespace

int constraints_of(const ConstraintTable &table, ForeignKeys::List *found) {
  return Reader(table).run(found);
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

}  // namespace shale_sql
