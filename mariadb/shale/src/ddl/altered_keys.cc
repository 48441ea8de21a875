// Columns of foreign keys that ALTER TABLE renames or drops.

#include "ddl/altered_keys.h"

#include "server.h"

#include "engine/engine.h"
#include "tables/constraint_text.h"
#include "tables/links.h"

#include <algorithm>

namespace shale_sql {

namespace {

using Columns = std::vector<std::string>;

// Names of the altered table; empty: the column goes.
Columns renamed(const Alter_info *statement, const Columns &columns) {
  Columns names;
  for (const std::string &column : columns) {
    names.emplace_back();
    List_iterator_fast<Create_field> all(const_cast<List<Create_field> &>(statement->create_list));
    while (const Create_field *is = all++) {
      if (is->field == nullptr || !same_name(is->field->field_name.str, column)) continue;
      names.back() = is->field_name.str;
    }
  }
  return names;
}

// By name: a key is another object once its other table, or a column there, has another name.
bool is_in(const ForeignKeys::List &list, const ForeignKeys::Shared &key) {
  const std::string name = entry_name_of(*key);
  return std::any_of(list.begin(), list.end(), [&](const ForeignKeys::Shared &one) {
    return entry_name_of(*one) == name;
  });
}

// Those that stay, of one side.
struct Side {
  ForeignKeys::List keys;
  bool is_child;
  const Columns &columns_of(const ForeignKey &key) const {
    return is_child ? key.columns : key.parent_columns;
  }
};

Side side_of(const AlteredTable &table, const Constraints &constraints, bool is_child) {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  Side side = {is_child ? keys.of_child(table.path) : keys.of_parent(table.path), is_child};
  side.keys.erase(std::remove_if(side.keys.begin(), side.keys.end(),
                                 [&](const ForeignKeys::Shared &key) {
                                   return is_in(constraints.gone, key);
                                 }),
                  side.keys.end());
  return side;
}

bool loses_index(const AlteredTable &table, const Side &side) {
  for (const ForeignKeys::Shared &key : side.keys) {
    const Columns &columns = side.columns_of(*key);
    const IndexDef *before = index_with(*table.was, columns);
    if (before == nullptr || index_with(*table.is, renamed(table.statement, columns))) continue;
    const std::string name = before == table.was->indexes.data() ? "PRIMARY" : before->name;
    my_error(ER_DROP_INDEX_FK, MYF(0), name.c_str());
    return true;
  }
  return false;
}

bool loses_column(const AlteredTable &table, const Side &side) {
  for (const ForeignKeys::Shared &key : side.keys) {
    const Columns &columns = side.columns_of(*key);
    const Columns names = renamed(table.statement, columns);
    const auto lost = std::find(names.begin(), names.end(), std::string());
    if (lost == names.end()) continue;
    const std::string &column = columns[static_cast<size_t>(lost - names.begin())];
    if (side.is_child) {
      std::string database, name;
      names_of(table.path, &database, &name);
      const std::string id = database + '/' + key->name;
      my_error(ER_FK_COLUMN_CANNOT_DROP, MYF(0), column.c_str(), id.c_str());
    } else {
      my_error(ER_FK_COLUMN_CANNOT_DROP_CHILD, MYF(0), column.c_str(), key->name.c_str(),
               full_name_of(key->child).c_str());
    }
    return true;
  }
  return false;
}

// Under a strict mode a parent's column does not become NULL if ON UPDATE CASCADE would write that
// to one that may not be NULL; CREATE TABLE looks at the same (Reader::cascades_null).
bool would_cascade_null(const AlteredTable &table, const Side &parents) {
  const Columns nullable = changing_null(table.statement, true);
  if (nullable.empty() || !table.thd->is_strict_mode()) return false;
  for (const ForeignKeys::Shared &key : parents.keys) {
    TableDef child;
    const bool to_itself = key->child == table.path;
    if (key->on_update != ForeignAction::kCascade) continue;
    if (!to_itself && engine().catalog.read(key->child, &child)) continue;
    const IndexDef *index = index_with(to_itself ? *table.was : child, key->columns);
    for (size_t i = 0; index != nullptr && i < key->parent_columns.size(); i++) {
      const std::string &column = key->parent_columns[i];
      if (index->parts[i].nullable || !is_named(nullable, column)) continue;
      std::string database, name;
      names_of(key->child, &database, &name);
      const std::string of_child = database + '.' + name;
      my_error(ER_FK_COLUMN_CANNOT_CHANGE_CHILD, MYF(0), column.c_str(), key->name.c_str(),
               of_child.c_str());
      return true;
    }
  }
  return false;
}

}  // namespace

bool refuses_to_alter(const AlteredTable &table, const Constraints &constraints) {
  const bool checks = checks_foreign_keys(table.thd);
  for (bool is_child : {true, false}) {
    const Side side = side_of(table, constraints, is_child);
    if (checks && loses_index(table, side)) return true;
    if (loses_column(table, side)) return true;
    if (checks && !is_child && would_cascade_null(table, side)) return true;
  }
  return false;
}

bool changes_columns_of_keys(const AlteredTable &table) {
  Columns linked;
  for (bool is_child : {true, false}) {
    const Side side = side_of(table, Constraints(), is_child);
    for (const ForeignKeys::Shared &key : side.keys) {
      const Columns &columns = side.columns_of(*key);
      linked.insert(linked.end(), columns.begin(), columns.end());
    }
  }
  List_iterator_fast<Create_field> all(
      const_cast<List<Create_field> &>(table.statement->create_list));
  while (const Create_field *is = all++) {
    if (is->field == nullptr) continue;
    const bool nullable = (is->flags & NOT_NULL_FLAG) == 0;
    if (is->field->is_equal(*is) && nullable == is->field->real_maybe_null()) continue;
    for (const std::string &column : linked) {
      if (same_name(is->field->field_name.str, column)) return true;
    }
  }
  return false;
}

ForeignKeys::Change change_of(const AlteredTable &table, const Constraints &constraints) {
  ForeignKeys::Change change;
  change.gone = constraints.gone;
  ForeignKeys::List all = side_of(table, constraints, true).keys;
  for (const ForeignKeys::Shared &key : side_of(table, constraints, false).keys) {
    if (!is_in(all, key)) all.push_back(key);
  }
  for (const ForeignKeys::Shared &key : all) {
    ForeignKey is = *key;
    if (key->child == table.path) is.columns = renamed(table.statement, key->columns);
    if (key->parent == table.path) {
      is.parent_columns = renamed(table.statement, key->parent_columns);
    }
    if (is.columns == key->columns && is.parent_columns == key->parent_columns) continue;
    change.gone.push_back(key);
    change.come.push_back(std::make_shared<const ForeignKey>(std::move(is)));
  }
  for (const ForeignKeys::Shared &key : constraints.added) {
    ForeignKey is = *key;
    is.unproven = false;
    change.come.push_back(std::make_shared<const ForeignKey>(std::move(is)));
  }
  return change;
}

}  // namespace shale_sql
