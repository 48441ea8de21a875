// Foreign keys out of the server's list of a statement.

#include "ddl/constraints.h"

#include "server.h"

#include "codec/key_shape.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/table_files.h"
#include "tables/constraint_text.h"
#include "tables/links.h"

#include <algorithm>

namespace shale_sql {

namespace {

constexpr const char *kAutomatic = "_ibfk_";
constexpr const char *kOnlyPrefix =
    "There is only prefix index in the referenced table where the referenced columns appear as the"
    " first columns.";

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

bool sets_null(const ForeignKey &key) {
  return key.on_delete == ForeignAction::kSetNull || key.on_update == ForeignAction::kSetNull;
}

// Whether the first columns of one index may reference those of the other.
bool fits(const IndexDef &child, const IndexDef &parent, size_t columns) {
  for (size_t i = 0; i < columns; i++) {
    if (!may_reference(child.parts[i], parent.parts[i])) return false;
  }
  return true;
}

// How many columns InnoDB counts of an index: with the primary key behind it. That has all columns.
size_t columns_in_innodb(const TableDef &def, const IndexDef &index) {
  if (&index == def.indexes.data()) return MAX_FIELDS;
  size_t count = index.parts.size() + (def.hidden_key ? 1 : 0);
  for (const PartDef &primary : def.indexes[0].parts) {
    const auto same = [&](const PartDef &part) { return same_name(part.column, primary.column); };
    count += std::none_of(index.parts.begin(), index.parts.end(), same);
  }
  return count;
}

class Reader {
 public:
  explicit Reader(const ConstraintTable &table) : table_(table) {
    // The path of a temporary table has no name.
    if (!table.temporary) names_of(table.known_as, &database_, &name_);
  }

  int run(Constraints *found);

 private:
  int keep(const ForeignKeys::Shared &key, Constraints *found) const;
  int add(const Foreign_key &from);
  int refuse_unknown_history(const ForeignKey &key) const;
  int take(const Foreign_key &from, ForeignKey *key);
  int name_automatic(ForeignKey *key);
  void count_from(const std::string &name);
  int look_at_parent(ForeignKey *key, TableDef *parent, bool *there);
  int name_columns(ForeignKey *key, const TableDef &def_of_parent);
  int check(ForeignKey *key);
  int check_parent(const ForeignKey &key, const TableDef &parent);
  int check_in_place(const ForeignKey &key, const TableDef *parent);
  int check_nulls(const ForeignKey &key);
  bool cascades_null(const ForeignKey &key, const TableDef &parent) const;
  bool may_be_null(const std::string &column) const;
  int check_names(const ForeignKeys::List &gone);
  int refuse_name(const ForeignKey &key);
  // Warning 150, then the number that becomes 1005.
  int refuse(const ForeignKey &key, const char *with, const std::string &why) const;
  bool is_in_place_unchecked() const {
    return table_.made == Made::kInPlace && !checks_foreign_keys(table_.thd);
  }

  const ConstraintTable &table_;
  std::string database_, name_;
  bool is_named_ = false;  // by the statement, the one that is looked at
  std::vector<ForeignKey> added_;
  unsigned long next_number_ = 1;
};

int Reader::refuse(const ForeignKey &key, const char *with, const std::string &why) const {
  std::string which;
  if (is_named_) {
    // In whichever quotes the session has names.
    which = " `" + key.name + '`';
  } else if (!key.columns.empty()) {
    which = " (" + list_of(key.columns, false) + ")";
  }
  std::string name;
  if (table_.made != Made::kTable) {
    name = full_name_of(table_.known_as);
  } else {
    // A temporary table's path has another name.
    const TABLE_SHARE *share = table_.form->s;
    // Of temporary tables InnoDB does not ask in which quotes the session has names.
    const auto quoted = [&](const char *one) {
      return table_.temporary ? '`' + std::string(one) + '`' : quoted_name(one);
    };
    name = quoted(share->db.str) + '.' + quoted(share->table_name.str);
  }
  push_warning_printf(table_.thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_CANNOT_ADD_FOREIGN,
                      "%s  table %s %sforeign key%s constraint failed. %s",
                      table_.made == Made::kTable ? "Create" : "Alter", name.c_str(), with,
                      which.c_str(), why.c_str());
  return HA_ERR_CANNOT_ADD_FOREIGN;
}

// Without it rows of the past would be taken for parents.
int Reader::refuse_unknown_history(const ForeignKey &key) const {
  const std::string why = "An earlier version of SHALE made the system-versioned table " +
                          full_name_of(key.parent) + "; read a row of it, and try again.";
  return refuse(key, "with ", why);
}

int Reader::take(const Foreign_key &from, ForeignKey *key) {
  is_named_ = from.constraint_name.str != nullptr;
  key->child = table_.known_as;
  if (is_named_) key->name = from.constraint_name.str;
  std::string database = from.ref_db.str != nullptr ? from.ref_db.str : database_;
  std::string parent = from.ref_table.str;
  if (lower_case_table_names != 0) {
    my_casedn_str(files_charset_info, &database[0]);
    my_casedn_str(files_charset_info, &parent[0]);
  }
  key->parent = path_of(database.c_str(), parent.c_str());
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
  key->unproven = checks_foreign_keys(table_.thd);
  return name_automatic(key);
}

// Later numbers than those that the table has.
void Reader::count_from(const std::string &name) {
  const std::string begins = name_ + kAutomatic;
  if (name.compare(0, begins.size(), begins) != 0) return;
  const unsigned long number = strtoul(name.c_str() + begins.size(), nullptr, 10);
  if (number >= next_number_) next_number_ = number + 1;
}

int Reader::name_automatic(ForeignKey *key) {
  if (!key->name.empty()) return 0;
  key->name = name_ + kAutomatic + std::to_string(next_number_++);
  const LEX_CSTRING name = {key->name.c_str(), key->name.size()};
  // Pushes 1059.
  return check_ident_length(&name) ? HA_ERR_INTERNAL_ERROR : 0;
}

// Its definition. Nobody changes that until the statement has ended.
int Reader::look_at_parent(ForeignKey *key, TableDef *parent, bool *there) {
  *there = true;
  if (key->parent == table_.known_as) {
    *parent = *table_.def;
    return 0;
  }
  if (int error = lock_definition(table_.thd, key->parent)) return error;
  const Error read = engine().catalog.read(key->parent, parent);
  if (read && read != HA_ERR_NO_SUCH_TABLE) return read.number();
  *there = !read && !parent->temporary;
  return 0;
}

// Columns get the names that their tables have for them. Of the parent's one may not be there. Its
// metadata lock is held.
int Reader::name_columns(ForeignKey *key, const TableDef &def_of_parent) {
  for (std::string &column : key->columns) {
    // As the table has it, whose letters may be of other case.
    const Field *field = field_named(table_.form->field, column);
    if (field != nullptr) column = field->field_name.str;
  }
  TABLE_LIST parent;
  TABLE_SHARE *share = nullptr;
  Field **fields = table_.form->field;
  if (key->parent != table_.known_as) {
    std::string database, name;
    names_of(key->parent, &database, &name);
    const LEX_CSTRING db = {database.c_str(), database.size()}, table = {name.c_str(), name.size()};
    parent.init_one_table(&db, &table, nullptr, TL_READ);
    MDL_REQUEST_INIT(&parent.mdl_request, MDL_key::TABLE, database.c_str(), name.c_str(),
                     MDL_SHARED_READ, MDL_TRANSACTION);
    share = tdc_acquire_share(table_.thd, &parent, GTS_TABLE);
    if (share == nullptr) return 0;
    fields = share->field;
  }
  if (share != nullptr && share->versioned && def_of_parent.row_end.column.empty()) {
    tdc_release_share(share);
    return refuse_unknown_history(*key);
  }
  const std::string *missing = nullptr;
  for (std::string &column : key->parent_columns) {
    const Field *field = field_named(fields, column);
    if (field != nullptr) column = field->field_name.str;
    if (field == nullptr && missing == nullptr) missing = &column;
  }
  if (share != nullptr) tdc_release_share(share);
  const bool to_itself = key->parent == table_.known_as;
  if (missing == nullptr || (is_in_place_unchecked() && !to_itself)) return 0;
  return refuse(*key, "", "Column " + *missing + " was not found.");
}

// As InnoDB looks: the last index that fails by more than a name says why.
int Reader::check_parent(const ForeignKey &key, const TableDef &parent) {
  const IndexDef *own = index_with(*table_.def, key.columns);
  std::string why = "There is no index in the referenced table where the referenced columns appear"
                    " as the first columns.";
  for (const IndexDef &index : parent.indexes) {
    if (columns_in_innodb(parent, index) < key.parent_columns.size()) continue;
    // Nor are SPATIAL ones looked at.
    if (!index.parts.empty() && is_of_cells(index.parts[0])) continue;
    size_t place = 0;
    for (; place < key.parent_columns.size() && place < index.parts.size(); place++) {
      const PartDef &part = index.parts[place];
      if (!part.whole) {
        why = kOnlyPrefix;
        break;
      }
      if (!same_name(part.column, key.parent_columns[place])) break;
      if (own == nullptr || may_reference(own->parts[place], part)) continue;
      why = "Field type or character set for column '" + key.columns[place] +
            "' does not match referenced column '" + key.parent_columns[place] + "'.";
      break;
    }
    if (place == key.parent_columns.size()) return 0;
  }
  return refuse(key, "with ", why);
}

// In place without checks InnoDB has numbers of its own, and takes a parent that is not there.
int Reader::check_in_place(const ForeignKey &key, const TableDef *parent) {
  const IndexDef *own = index_with(*table_.def, key.columns);
  const char *name = is_named_ ? key.name.c_str() : "";
  // The own index that there is in any case is of prefixes then.
  if (own == nullptr && parent == nullptr) {
    const std::string id = database_ + '/' + key.name;
    my_error(ER_FK_INCORRECT_OPTION, MYF(0), name_.c_str(), id.c_str());
    return HA_ERR_GENERIC;
  }
  const IndexDef *other = parent == nullptr ? nullptr : index_with(*parent, key.parent_columns);
  const bool serves =
      own != nullptr && other != nullptr && fits(*own, *other, key.columns.size());
  if (parent != nullptr && !serves) {
    std::string database, table;
    names_of(key.parent, &database, &table);
    my_error(ER_FK_NO_INDEX_PARENT, MYF(0), name, table.c_str());
    return HA_ERR_GENERIC;
  }
  for (size_t i = 0; sets_null(key) && i < key.columns.size(); i++) {
    if (may_be_null(key.columns[i])) continue;
    my_error(ER_FK_INCORRECT_OPTION, MYF(0), name_.c_str(), name);
    return HA_ERR_GENERIC;
  }
  return 0;
}

int Reader::check(ForeignKey *key) {
  TableDef parent;
  bool there = false;
  if (int error = look_at_parent(key, &parent, &there)) return error;
  // InnoDB looks for the own index first, and has these words where that is of prefixes.
  if (!is_in_place_unchecked() && index_with(*table_.def, key->columns) == nullptr) {
    return refuse(*key, "with ", kOnlyPrefix);
  }
  if (checks_foreign_keys(table_.thd) && !there) {
    return refuse(*key, "with ", "Referenced table " + full_name_of(key->parent) +
                                     " not found in the data dictionary.");
  }
  if (there) {
    if (int error = name_columns(key, parent)) return error;
  }
  if (is_in_place_unchecked()) return check_in_place(*key, there ? &parent : nullptr);
  if (there) {
    if (int error = check_parent(*key, parent)) return error;
    if (cascades_null(*key, parent)) return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  return check_nulls(*key);
}

// Under a strict mode InnoDB refuses, without a reason, an ON UPDATE CASCADE from a column that may
// be NULL to one that may not; it looks only if there is no ON DELETE.
bool Reader::cascades_null(const ForeignKey &key, const TableDef &parent) const {
  const bool alone = key.on_delete == ForeignAction::kRestrict ||
                     key.on_delete == ForeignAction::kSetDefault;
  if (key.on_update != ForeignAction::kCascade || !alone) return false;
  if (!table_.thd->is_strict_mode()) return false;
  const IndexDef *own = index_with(*table_.def, key.columns);
  const IndexDef *other = index_with(parent, key.parent_columns);
  for (size_t i = 0; own != nullptr && other != nullptr && i < key.columns.size(); i++) {
    if (other->parts[i].nullable && !own->parts[i].nullable) return true;
  }
  return false;
}

bool Reader::may_be_null(const std::string &column) const {
  const Field *field = field_named(table_.form->field, column);
  return field == nullptr || field->real_maybe_null();
}

// What SET NULL would write.
int Reader::check_nulls(const ForeignKey &key) {
  if (!sets_null(key)) return 0;
  for (const std::string &column : key.columns) {
    if (may_be_null(column)) continue;
    return refuse(key, "with ", "You have defined a SET NULL condition but column '" + column +
                                    "' is defined as NOT NULL.");
  }
  return 0;
}

int Reader::refuse_name(const ForeignKey &key) {
  const std::string id = database_ + '/' + key.name;
  const bool own = is_in_place_unchecked() &&
                   engine().catalog.foreign_keys().named(table_.known_as, key.name) != nullptr;
  if (own) {
    my_error(ER_DUP_CONSTRAINT_NAME, MYF(0), "FOREIGN KEY", id.c_str());
    return HA_ERR_GENERIC;
  }
  push_warning_printf(table_.thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_FOUND_DUPP_KEY,
                      "CREATE or ALTER TABLE %s failed: duplicate name,%s",
                      full_name_of(table_.known_as).c_str(), clause_of(key).c_str());
  if (!is_in_place_unchecked()) return HA_ERR_FOUND_DUPP_KEY;
  my_error(ER_FK_FAIL_ADD_SYSTEM, MYF(0), id.c_str());
  return HA_ERR_GENERIC;
}

// One name twice in a statement; or, letter case aside, in the database.
int Reader::check_names(const ForeignKeys::List &gone) {
  std::vector<const ForeignKey *> sorted;
  for (const ForeignKey &key : added_) sorted.push_back(&key);
  std::sort(sorted.begin(), sorted.end(),
            [](const ForeignKey *one, const ForeignKey *other) { return one->name < other->name; });
  for (size_t i = 1; i < sorted.size(); i++) {
    if (sorted[i]->name != sorted[i - 1]->name) continue;
    return is_in_place_unchecked() ? refuse_name(*sorted[i]) : HA_ERR_CANNOT_ADD_FOREIGN;
  }
  ForeignKeys::Change change;
  change.gone = gone;
  for (const ForeignKey *key : sorted) {
    change.come.push_back(std::make_shared<const ForeignKey>(*key));
    if (!engine().catalog.foreign_keys().taken_by(change).empty()) return refuse_name(*key);
  }
  return 0;
}

int Reader::keep(const ForeignKeys::Shared &key, Constraints *found) const {
  if (table_.made != Made::kCopy) {
    found->kept.push_back(key);
    return 0;
  }
  if (takes_null(table_.thd, table_.statement, *key)) return HA_ERR_GENERIC;
  // From here on nobody renames the parent, or a column of it, of which a copy would not hear.
  ForeignKeys::Shared now = key;
  if (int error = lock_parent(table_.thd, &now)) return error;
  ForeignKey copy = *now;
  copy.child = table_.path;
  copy.known_as = table_.known_as;
  copy.unproven = false;
  found->kept.push_back(std::make_shared<const ForeignKey>(std::move(copy)));
  return 0;
}

int Reader::add(const Foreign_key &from) {
  ForeignKey key;
  if (table_.temporary) {
    return refuse(key, "with ", "Temporary tables can't have foreign key constraints.");
  }
  if (int error = take(from, &key)) return error;
  if (int error = check(&key)) return error;
  added_.push_back(std::move(key));
  return 0;
}

int Reader::run(Constraints *found) {
  ForeignKeys::List was;
  if (table_.made != Made::kTable) was = engine().catalog.foreign_keys().of_child(table_.known_as);
  for (const ForeignKeys::Shared &key : was) count_from(key->name);
  List_iterator_fast<Key> all(const_cast<List<Key> &>(table_.statement->key_list));
  std::vector<std::string> stay;
  while (const Key *one = all++) {
    if (one->type != Key::FOREIGN_KEY) continue;
    const auto &from = static_cast<const Foreign_key &>(*one);
    if (!one->old) {
      if (int error = add(from)) return error;
    } else if (table_.made != Made::kTable) {  // CREATE TABLE ... LIKE takes none over

      stay.push_back(from.constraint_name.str);
    }
  }
  for (const ForeignKeys::Shared &key : was) {
    const bool stays = std::find(stay.begin(), stay.end(), key->name) != stay.end();
    if (!stays) {
      found->gone.push_back(key);
    } else if (int error = keep(key, found)) {
      return error;
    }
  }
  if (int error = check_names(found->gone)) return error;
  for (ForeignKey &key : added_) {
    key.child = table_.path;
    if (table_.made == Made::kCopy) key.known_as = table_.known_as;
    found->added.push_back(std::make_shared<const ForeignKey>(std::move(key)));
  }
  return 0;
}

// One of those that the server has taken over from the altered table; nullptr: there is none.
const Foreign_key *any_old(const Alter_info *statement) {
  List_iterator_fast<Key> all(const_cast<List<Key> &>(statement->key_list));
  while (const Key *one = all++) {
    if (one->type == Key::FOREIGN_KEY && one->old) return static_cast<const Foreign_key *>(one);
  }
  return nullptr;
}

}  // namespace

int constraints_of(const ConstraintTable &table, Constraints *found) {
  return Reader(table).run(found);
}

std::vector<std::string> changing_null(const Alter_info *statement, bool to_null) {
  std::vector<std::string> names;
  List_iterator_fast<Create_field> all(const_cast<List<Create_field> &>(statement->create_list));
  while (const Create_field *is = all++) {
    const bool nullable = (is->flags & NOT_NULL_FLAG) == 0;
    if (is->field == nullptr || nullable != to_null) continue;
    if (is->field->real_maybe_null() != nullable) names.push_back(is->field->field_name.str);
  }
  return names;
}

bool is_named(const std::vector<std::string> &columns, const std::string &column) {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const std::string &one) { return same_name(one, column); });
}

bool takes_null(THD *thd, const Alter_info *statement, const ForeignKey &key) {
  if (!sets_null(key) || !checks_foreign_keys(thd)) return false;
  for (const std::string &column : changing_null(statement, false)) {
    if (!is_named(key.columns, column)) continue;
    my_error(ER_FK_COLUMN_NOT_NULL, MYF(0), column.c_str(), key.name.c_str());
    return true;
  }
  return false;
}

std::string known_path(THD *thd, const std::string &path, const Alter_info *statement) {
  if (thd == nullptr || !is_intermediate(path)) return path;
  const int command = thd_sql_command(thd);
  const bool alters = command == SQLCOM_ALTER_TABLE || command == SQLCOM_CREATE_INDEX ||
                      command == SQLCOM_DROP_INDEX;
  if (alters && thd->lex->query_tables != nullptr) {
    const TABLE_LIST *table = thd->lex->query_tables;
    return path_of(table->db.str, table->table_name.str);
  }
  // OPTIMIZE and its like may name several tables.
  const Foreign_key *old = statement == nullptr ? nullptr : any_old(statement);
  if (old == nullptr) return path;
  const ForeignKeys::Shared key =
      engine().catalog.foreign_keys().named(path, old->constraint_name.str);
  return key == nullptr ? path : key->child;
}

bool fits_children(const std::string &path, const TableDef &def) {
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_parent(path)) {
    const IndexDef *index = index_with(def, key->parent_columns);
    if (index == nullptr) return false;
    TableDef child;
    const bool to_itself = key->child == path;
    if (!to_itself && engine().catalog.read(key->child, &child)) continue;
    const IndexDef *other = index_with(to_itself ? def : child, key->columns);
    if (other != nullptr && !fits(*other, *index, key->columns.size())) return false;
  }
  return true;
}

}  // namespace shale_sql
