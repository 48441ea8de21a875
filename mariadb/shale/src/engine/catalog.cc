// The entries of the catalog, and its changes, each in one step.

#include "engine/catalog.h"

#include "server.h"

#include "engine/errors.h"
#include "engine/table_files.h"

#include <unistd.h>

namespace shale_sql {

namespace {

constexpr const char *kTree = "catalog";

std::string table_key(const std::string &path) { return "T" + path; }

std::string renamed_key(const std::string &path) { return "R" + path; }

std::string known_key(const std::string &path) { return "K" + path; }

std::string foreign_key(const ForeignKey &key) { return "F" + entry_name_of(key); }

// As the server compares names: letter case aside.
std::string fold_name(std::string_view name) {
  std::string folded(name.size() * system_charset_info->casedn_multiply(), '\0');
  folded.resize(system_charset_info->casedn(name.data(), name.size(), &folded[0], folded.size()));
  return folded;
}

std::string table_name_of(const std::string &path) {
  const size_t separator = path.rfind(FN_LIBCHAR);
  const std::string file = separator == std::string::npos ? path : path.substr(separator + 1);
  char name[NAME_LEN + 1];
  return {name, filename_to_tablename(file.c_str(), name, sizeof(name))};
}

std::string bytes_of_number(uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

std::string number_key(char kind, uint64_t table_id) {
  return kind + bytes_of_number(table_id);
}

}  // namespace

std::string tree_name(uint64_t table_id, uint32_t index_id) {
  return std::to_string(table_id) + "." + std::to_string(index_id);
}

namespace {

// Whether the database takes writes.
Error is_writable(const shale_db *db) {
  shale_batch *nothing = nullptr;
  Error error = consume_error(shale_batch_new(&nothing));
  if (!error) error = consume_error(shale_write(db, nothing, false));
  shale_batch_free(nothing);
  return error;
}

// A definition that was written and not synced is there, or is not: the next start tells. The
// server would go on with the one that it had, and read rows by the wrong one. So it ends, as
// InnoDB's does, before its own log of DDL says that the statement is done or undone. A database
// that takes no writes any more is met before anything is written, and only refuses.
template <typename Write>
Error write_durably(const shale_db *db, Write write) {
  if (Error error = is_writable(db)) return error;
  shale_error *error = write();
  const bool is_unknown = error != nullptr && shale_error_kind_of(error) == SHALE_POISONED;
  Error failed = consume_error(error);
  if (!is_unknown) return failed;
  log_error("a change of the catalog could not be made durable, and nobody knows whether it is: "
            "the server ends. See to the disk, then start it again");
  _exit(1);
}

struct Changes {
  shale_batch *batch = nullptr;
  shale_error *error = shale_batch_new(&batch);
  ~Changes() { shale_batch_free(batch); }

  void put(const shale_tree *tree, const std::string &key, const std::string &value) {
    if (error == nullptr) {
      error = shale_batch_put(batch, tree, key.data(), key.size(), value.data(), value.size());
    }
  }
  void erase(const shale_tree *tree, const std::string &key) {
    if (error == nullptr) {
      error = shale_batch_delete(batch, tree, key.data(), key.size(), nullptr, 0);
    }
  }
  void change(const shale_tree *tree, const ForeignKeys::Change &change) {
    for (const ForeignKeys::Shared &key : change.gone) erase(tree, foreign_key(*key));
    for (const ForeignKeys::Shared &key : change.come) put(tree, foreign_key(*key), bytes_of(*key));
  }
  void erase_numbers(const shale_tree *tree, uint64_t table_id) {
    for (char kind : {'A', 'H', 'S'}) erase(tree, number_key(kind, table_id));
  }
  Error write(const shale_db *db, bool sync = true) {
    if (error != nullptr) return consume_error(error);
    if (!sync) return consume_error(shale_write(db, batch, false));
    return write_durably(db, [&] { return shale_write(db, batch, true); });
  }
};

}  // namespace

Catalog::Catalog() : foreign_keys_({fold_name, table_name_of, is_intermediate}) {}

Error Catalog::open(shale_db *db) {
  db_ = db;
  shale_tree *tree = nullptr;
  if (Error error = consume_error(
          shale_tree_open(db, kTree, SHALE_TREE_THERE_OR_NEW, nullptr, &tree))) {
    return error;
  }
  tree_.reset(tree);
  if (Error error = erase_temporary()) return error;
  if (Error error = read_foreign_keys()) return error;
  return drop_orphans();
}

Error Catalog::look(shale_db *db) {
  db_ = db;
  shale_tree *tree = nullptr;
  Error error = consume_error(shale_tree_open(db, kTree, SHALE_TREE_THERE, nullptr, &tree));
  tree_.reset(tree);
  return error;
}

Error Catalog::read_foreign_keys() {
  ForeignKeys::Change found;
  ForeignKeys::List lost;
  Error error = each_of('F', "", [&](const std::string &name, std::string_view bytes) -> Error {
    ForeignKey key;
    if (!parse(name, bytes, &key)) {
      return Error(HA_ERR_CRASHED_ON_USAGE, "a foreign key in the catalog is damaged, of table " +
                                                std::string(name.c_str()) +
                                                ": restore the catalog from a backup");
    }
    found.come.push_back(std::make_shared<const ForeignKey>(std::move(key)));
    return 0;
  });
  for (size_t i = 0; !error && i < found.come.size();) {
    TableDef def;
    error = read(found.come[i]->child, &def);
    if (error != HA_ERR_NO_SUCH_TABLE) {
      i++;
      continue;
    }
    error = 0;
    lost.push_back(found.come[i]);
    found.come.erase(found.come.begin() + static_cast<ptrdiff_t>(i));
  }
  if (error) return error;
  foreign_keys_.apply(found);
  if (lost.empty()) return 0;
  Changes changes;
  for (const ForeignKeys::Shared &key : lost) {
    log_note("foreign key " + key->name + " is of table " + key->child +
             ", which is not there, and is dropped");
    changes.erase(tree_.get(), foreign_key(*key));
  }
  return changes.write(db_);
}

Error Catalog::erase_temporary() {
  std::vector<std::pair<std::string, TableDef>> found;
  Error error = each([&](const std::string &path, const TableDef &def) {
    if (def.temporary) found.emplace_back(path, def);
  });
  for (size_t i = 0; !error && i < found.size(); i++) {
    error = erase(found[i].first, found[i].second);
  }
  return error;
}

void Catalog::close() { tree_.reset(); }

Error Catalog::read(const std::string &path, TableDef *def) const {
  std::string key = table_key(path);
  shale_bytes *found = nullptr;
  shale_error *error = shale_get(tree_.get(), nullptr, key.data(), key.size(), &found);
  if (error != nullptr) return consume_error(error);
  if (found == nullptr) return HA_ERR_NO_SUCH_TABLE;
  BytesHandle bytes(found);
  if (parse(view_of(bytes), def)) return 0;
  return Error(HA_ERR_CRASHED_ON_USAGE, "the definition of table " + path +
                                             " in the catalog is damaged: restore it from a "
                                             "backup");
}

Error Catalog::put(const std::string &key, const std::string &value, bool sync) {
  const auto write = [&] {
    return shale_put(tree_.get(), key.data(), key.size(), value.data(), value.size(), sync);
  };
  return sync ? write_durably(db_, write) : consume_error(write());
}

Error Catalog::write(const std::string &path, const TableDef &def) {
  // Without a sync: a temporary table does not outlive a crash in any case.
  Error error = put(table_key(path), bytes_of(def), !def.temporary);
  definitions_++;
  return error;
}

Error Catalog::complete(const std::string &path, const TableDef &def) {
  Error error = put(table_key(path), bytes_of(def), false);
  definitions_++;
  return error;
}

std::string Catalog::known_as(const std::string &path) const {
  if (!is_intermediate(path)) return path;
  const std::string key = known_key(path);
  shale_bytes *found = nullptr;
  shale_error *error = shale_get(tree_.get(), nullptr, key.data(), key.size(), &found);
  const BytesHandle bytes(found);
  return consume_error(error) || found == nullptr ? path : std::string(view_of(bytes));
}

Error Catalog::write_new(const std::string &path, const std::string &known_as,
                         const TableDef &def, const ForeignKeys::List &keys) {
  if (keys.empty() && known_as == path) return write(path, def);
  std::lock_guard<std::mutex> lock(foreign_keys_lock_);
  const ForeignKeys::Change change = {{}, keys};
  if (!foreign_keys_.taken_by(change).empty()) return HA_ERR_FOUND_DUPP_KEY;
  Changes changes;
  changes.put(tree_.get(), table_key(path), bytes_of(def));
  if (known_as != path) changes.put(tree_.get(), known_key(path), known_as);
  changes.change(tree_.get(), change);
  if (Error error = changes.write(db_)) return error;
  definitions_++;
  foreign_keys_.apply(change);
  return 0;
}

Error Catalog::erase(const std::string &path, const TableDef &def) {
  Changes changes;
  changes.erase(tree_.get(), table_key(path));
  changes.erase_numbers(tree_.get(), def.table_id);
  if (is_partition(path)) changes.erase(tree_.get(), renamed_key(path));
  if (is_intermediate(path)) changes.erase(tree_.get(), known_key(path));
  std::unique_lock<std::mutex> lock(foreign_keys_lock_);
  const ForeignKeys::Change change = foreign_keys_.dropped(path);
  // Statements on tables without foreign keys write side by side.
  if (change.empty()) lock.unlock();
  changes.change(tree_.get(), change);
  if (Error error = changes.write(db_, !def.temporary)) return error;
  definitions_++;
  foreign_keys_.apply(change);
  return 0;
}

Error Catalog::rename(const std::string &from, const std::string &to) {
  TableDef def;
  if (Error error = read(from, &def)) return error;
  // The server does not ask for this; trees of a table that is in the way would be lost.
  TableDef other;
  Error error = read(to, &other);
  if (error != HA_ERR_NO_SUCH_TABLE) {
    if (error) return error;
    return Error(HA_ERR_TABLE_EXIST, "there is a table " + to + " already");
  }
  Changes changes;
  changes.erase(tree_.get(), table_key(from));
  changes.put(tree_.get(), table_key(to), bytes_of(def));
  if (is_partition(from)) changes.erase(tree_.get(), renamed_key(from));
  // The server renames a table's partitions one by one, and has no way back from some of them.
  if (is_same_partition(from, to)) changes.put(tree_.get(), renamed_key(to), from);
  std::string known = known_as(from);
  if (is_intermediate(known)) known = to;
  if (is_intermediate(from)) changes.erase(tree_.get(), known_key(from));
  if (is_intermediate(to) && !is_partition(to)) changes.put(tree_.get(), known_key(to), known);
  std::unique_lock<std::mutex> lock(foreign_keys_lock_);
  const ForeignKeys::Change change = foreign_keys_.renamed(from, known, to);
  if (change.empty()) lock.unlock();
  const std::string taken = foreign_keys_.taken_by(change);
  if (!taken.empty()) {
    return Error(HA_ERR_FOUND_DUPP_KEY, "there is a foreign key " + taken +
                                            " in the database already: rename table " + from +
                                            " otherwise, or drop that foreign key");
  }
  changes.change(tree_.get(), change);
  if ((error = changes.write(db_))) return error;
  definitions_++;
  foreign_keys_.apply(change);
  return 0;
}

Error Catalog::renamed(std::vector<std::pair<std::string, std::string>> *found) const {
  return each_of('R', "", [&](const std::string &path, std::string_view was) {
    found->emplace_back(path, was);
    return 0;
  });
}

Error Catalog::forget_renamed() { return replace_marks('R', {}); }

Error Catalog::lost(std::set<std::string> *tables) const { return marks('L', tables); }

Error Catalog::write_lost(const std::set<std::string> &tables) {
  return replace_marks('L', tables);
}

Error Catalog::marks(char kind, std::set<std::string> *paths) const {
  return each_of(kind, "", [&](const std::string &path, std::string_view) {
    paths->insert(path);
    return 0;
  });
}

Error Catalog::replace_marks(char kind, const std::set<std::string> &paths) {
  std::set<std::string> old;
  Error error = marks(kind, &old);
  if (error || old == paths) return error;
  Changes changes;
  for (const std::string &path : old) changes.erase(tree_.get(), kind + path);
  for (const std::string &path : paths) changes.put(tree_.get(), kind + path, "");
  return changes.write(db_);
}

Error Catalog::replace(const std::vector<Replaced> &tables) {
  Changes changes;
  bool lasts = false;
  for (const Replaced &one : tables) {
    lasts = lasts || !one.is.temporary;
    if (one.was.table_id != one.is.table_id) changes.erase_numbers(tree_.get(), one.was.table_id);
    changes.put(tree_.get(), table_key(one.path), bytes_of(one.is));
  }
  Error error = changes.write(db_, lasts);
  definitions_++;
  return error;
}

Error Catalog::write_all(const std::vector<Redefined> &tables, const ChangeKeys &change_keys) {
  Changes changes;
  for (const Redefined &one : tables) {
    changes.put(tree_.get(), table_key(one.path), bytes_of(*one.def));
    if (one.number != 0) {
      changes.put(tree_.get(), number_key('A', one.def->table_id), bytes_of_number(one.number));
    }
  }
  std::unique_lock<std::mutex> lock(foreign_keys_lock_);
  ForeignKeys::Change change;
  if (Error error = change_keys(&change)) return error;
  if (change.empty()) lock.unlock();
  if (!foreign_keys_.taken_by(change).empty()) return HA_ERR_FOUND_DUPP_KEY;
  changes.change(tree_.get(), change);
  Error error = changes.write(db_);
  definitions_++;
  if (!error) foreign_keys_.apply(change);
  return error;
}

Error Catalog::new_table_id(uint64_t *id) {
  std::lock_guard<std::mutex> one_at_a_time(ids_);
  uint64_t next = 0;
  if (Error error = read_number('N', 0, &next)) return error;
  *id = next + 1;
  return write_number('N', 0, next + 1);
}

Error Catalog::each(const VisitTable &visit) const {
  return each_table("", visit);
}

Error Catalog::each_partition(const std::string &table, const VisitTable &visit) const {
  return each_table(table + "#", [&](const std::string &path, const TableDef &def) {
    if (is_partition(path) && table_of(path) == table) visit(path, def);
  });
}

Error Catalog::each_table(const std::string &beginning, const VisitTable &visit) const {
  return each_of('T', beginning, [&](const std::string &path, std::string_view value) -> Error {
    TableDef def;
    if (!parse(value, &def)) {
      return Error(HA_ERR_CRASHED_ON_USAGE, "the definition of table " + path + " is damaged");
    }
    visit(path, def);
    return 0;
  });
}

Error Catalog::each_of(char kind, const std::string &beginning, const Visit &visit) const {
  std::string start = kind + beginning, end = start;
  end.back()++;
  shale_scan *begun = nullptr;
  if (Error error = consume_error(shale_scan_new(tree_.get(), nullptr, start.data(), start.size(),
                                           end.data(), end.size(), true, &begun))) {
    return error;
  }
  ScanHandle scan(begun);
  Error error = consume_error(move_scan(begun, SHALE_FIRST));
  while (!error && at_row(begun)) {
    size_t key_len = 0, value_len = 0;
    const char *key = static_cast<const char *>(shale_scan_key(begun, &key_len));
    const void *value = nullptr;
    if ((error = consume_error(shale_scan_value(begun, &value, &value_len)))) break;
    std::string path(key + 1, key_len - 1);
    if ((error = visit(path, {static_cast<const char *>(value), value_len}))) break;
    error = consume_error(move_scan(begun, SHALE_NEXT));
  }
  return error;
}

Error Catalog::read_text(char kind, uint64_t table_id, std::string *text) const {
  std::string key = number_key(kind, table_id);
  shale_bytes *found = nullptr;
  shale_error *error = shale_get(tree_.get(), nullptr, key.data(), key.size(), &found);
  if (error != nullptr) return consume_error(error);
  BytesHandle bytes(found);
  text->clear();
  if (found != nullptr) *text = view_of(bytes);
  return 0;
}

Error Catalog::write_text(char kind, uint64_t table_id, const std::string &text) {
  return put(number_key(kind, table_id), text, false);
}

Error Catalog::read_number(char kind, uint64_t table_id, uint64_t *number) const {
  std::string text;
  *number = 0;
  if (Error error = read_text(kind, table_id, &text)) return error;
  for (unsigned char byte : text) *number = *number << 8 | byte;
  return 0;
}

Error Catalog::write_number(char kind, uint64_t table_id, uint64_t number) {
  return write_text(kind, table_id, bytes_of_number(number));
}

Error Catalog::drop_orphans() {
  std::set<std::string> known{kTree};
  Error error = each([&](const std::string &, const TableDef &def) {
    for (const IndexDef &index : def.indexes) known.insert(tree_name(def.table_id, index.id));
  });
  if (error) return error;
  shale_bytes *bytes = nullptr;
  size_t count = 0;
  if ((error = consume_error(shale_tree_names(db_, &bytes, &count)))) return error;
  BytesHandle names(bytes);
  const char *name = static_cast<const char *>(shale_bytes_data(bytes, nullptr));
  std::vector<const char *> orphans;
  for (size_t i = 0; i < count; i++, name += strlen(name) + 1) {
    if (known.count(name) != 0) continue;
    log_note("tree " + std::string(name) + " belongs to no table and is dropped: a statement that"
             " made it did not come to its end");
    orphans.push_back(name);
  }
  return consume_error(
      shale_trees_change(db_, nullptr, 0, nullptr, orphans.data(), orphans.size(), nullptr));
}

}  // namespace shale_sql
