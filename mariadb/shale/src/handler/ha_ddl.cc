// Creating, dropping, renaming, emptying tables. Each is one change of the catalog: trees are made
// before it and dropped after it, so that a crash leaves trees without a table at most, which the
// next start drops.

#include "handler/ha_shale.h"

#include "codec/index_defs.h"
#include "ddl/constraints.h"
#include "ddl/ddl_recovery.h"
#include "ddl/options.h"
#include "ddl/table_trees.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/table_files.h"
#include "engine/trees.h"
#include "tables/constraint_text.h"
#include "txn/in_doubt.h"
#include "words/stopword_table.h"

#include <algorithm>

using namespace shale_sql;

namespace {

int refuse(const char *what) {
  my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "SHALE", what);
  return HA_ERR_UNSUPPORTED;
}

// Refuses what would not be kept, instead of leaving it out without a word.
int check_definition(TABLE *form, HA_CREATE_INFO *info) {
  for (uint number = 0; number < form->s->keys; number++) {
    const KEY &key = form->key_info[number];
    if ((key.flags & HA_FULLTEXT) == 0) continue;
    for (uint part = 0; part < key.user_defined_key_parts; part++) {
      // Nor has InnoDB such an index.
      if (!form->field[key.key_part[part].fieldnr - 1]->stored_in_db()) {
        my_error(ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, MYF(0));
        return HA_ERR_UNSUPPORTED;
      }
    }
  }
  if (info->data_file_name != nullptr) return refuse("DATA DIRECTORY");
  if (info->index_file_name != nullptr) return refuse("INDEX DIRECTORY");
  if (const char *what = refused_row_format(form->in_use, info)) return refuse(what);
  return 0;
}

// Whether a table that is to be made would hide rows of one that has lost its .frm file.
bool is_in_the_way(THD *thd, const std::string &path) {
  if (is_lost(path)) return true;
  // Partitions that come and go in ALTER TABLE are made anew if one has stayed.
  bool made_anew = is_partition(path) && thd_sql_command(thd) != SQLCOM_CREATE_TABLE;
  TableDef def;
  if (made_anew || is_intermediate(path)) return false;
  if (engine().catalog.read(path, &def) == HA_ERR_NO_SUCH_TABLE) return false;
  if (Error error = note_lost(path)) {
    log_error("the catalog cannot be changed: " + error.text());
  }
  return true;
}

int refuse_over(const std::string &path) {
  my_printf_error(ER_TABLE_EXISTS_ERROR, "SHALE: table %s is there, without its .frm file: %s",
                  MYF(0), table_of(path).c_str(), kWayOut);
  return HA_ERR_TABLE_EXIST;
}

// Those of a new table. Partitions have none; nor do tables that no list comes with.
int foreign_keys_of(THD *thd, const std::string &path, const std::string &known_as, TABLE *form,
                    const HA_CREATE_INFO *info, const TableDef &def, ForeignKeys::List *keys) {
  if (is_partition(path) || info->alter_info == nullptr) return 0;
  const Made made = is_intermediate(path) && !def.temporary ? Made::kCopy : Made::kTable;
  const ConstraintTable table = {thd,  made, path, known_as, form, &def,
                                 info->alter_info, def.temporary};
  Constraints found;
  if (int error = constraints_of(table, &found)) return error;
  *keys = std::move(found.kept);
  keys->insert(keys->end(), found.added.begin(), found.added.end());
  const bool is_parent = made == Made::kTable && !def.temporary && checks_foreign_keys(thd);
  return is_parent && !fits_children(path, def) ? HA_ERR_CANNOT_ADD_FOREIGN : 0;
}

// A partition that comes to others has the words that they have, whatever the session's rules are:
// one MATCH searches all of them.
Error take_words_of_others(const std::string &path, TableDef *def) {
  const auto has_words = [](const IndexDef &index) { return index.has_words; };
  const bool any = std::any_of(def->indexes.begin(), def->indexes.end(), has_words);
  if (!any || !is_partition(path)) return 0;
  return engine().catalog.each_partition(
      table_of(path), [&](const std::string &, const TableDef &other) {
        for (IndexDef &index : def->indexes) {
          for (const IndexDef &theirs : other.indexes) {
            if (theirs.has_words && theirs.name == index.name) index.words = theirs.words;
          }
        }
      });
}

}  // namespace

int ha_shale::create(const char *name, TABLE *form, HA_CREATE_INFO *info) {
  if (int error = check_definition(form, info)) return error;
  // Of a partition the server has put its own there.
  const TreeOptions asked = tree_options(form->s->option_struct);
  std::string why;
  if (!check_codec(asked.codec, &why)) {
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "SHALE: COMPRESSION='%s': %s", MYF(0),
                    asked.codec.c_str(), why.c_str());
    return HA_ERR_UNSUPPORTED;
  }
  TableDef def;
  if (is_in_the_way(ha_thd(), name)) return refuse_over(name);
  const std::string known_as =
      info->tmp_table() || is_partition(name) ? name : known_path(ha_thd(), name, info->alter_info);
  if (Error error = engine().catalog.new_table_id(&def.table_id)) return note(std::move(error));
  def.codec = asked.codec;
  def.dictionary = asked.dictionary;
  def.hidden_key = form->s->primary_key == MAX_KEY;
  def.temporary = info->tmp_table();
  def.version.assign(reinterpret_cast<const char *>(form->s->tabledef_version.str),
                     form->s->tabledef_version.length);
  KeyCodec primary(form, form->s->primary_key, nullptr);
  def.forms.push_back(RowCodec::columns_of(form, &primary));
  def.next_column_id = static_cast<uint32_t>(def.forms[0].size());
  auto add = [&](const char *index) { def.indexes.push_back({def.next_index_id++, index}); };
  add(def.hidden_key ? "" : form->key_info[form->s->primary_key].name.str);
  for (uint number = 0; number < form->s->keys; number++) {
    if (number != form->s->primary_key) add(form->key_info[number].name.str);
  }
  describe_indexes(form, &def);
  if (int error = note(set_new_rules(ha_thd(), 0, &def))) return error;
  if (int error = note(take_words_of_others(name, &def))) return error;
  ForeignKeys::List keys;
  if (int error = foreign_keys_of(ha_thd(), name, known_as, form, info, def, &keys)) return error;
  std::vector<TreeHandle> trees;
  Error error = make_table_trees(def, &trees);
  if (!error && info->auto_increment_value > 1) {
    error = engine().catalog.write_number('A', def.table_id, info->auto_increment_value);
  }
  if (!error) error = engine().catalog.write_new(name, known_as, def, keys);
  if (error) drop_table_trees(def);
  SharedTable::forget(name, false);
  // A temporary table is seen by the transaction that makes it.
  if (!error && !def.temporary) SharedTable::note_new_trees(name);
  return note(std::move(error));
}

namespace {

using Tables = std::vector<std::pair<std::string, TableDef>>;

// The partitions of a table; HA_ERR_NO_SUCH_TABLE if there are none.
Error partitions_of(const std::string &table, Tables *found) {
  Error error = engine().catalog.each_partition(
      table, [&](const std::string &path, const TableDef &def) { found->emplace_back(path, def); });
  if (!error && found->empty()) return HA_ERR_NO_SUCH_TABLE;
  return error;
}

Error rename_one(const std::string &from, const std::string &to) {
  Error error = engine().catalog.rename(from, to);
  if (!error) SharedTable::note_renamed(from, to);
  return error;
}

// A partitioned table whose list of partitions is not there: the server asks as for one without.
Error drop_all_partitions(const std::string &table) {
  Tables partitions;
  Error error = partitions_of(table, &partitions);
  for (size_t i = 0; !error && i < partitions.size(); i++) {
    error = shale_sql::drop_table(partitions[i].first, partitions[i].second);
  }
  return error;
}

// After a crash the server renames a table altered from partitions to partitions as if it had none.
Error rename_all_partitions(const std::string &from, const std::string &to) {
  Tables partitions;
  Error error = partitions_of(from, &partitions);
  // Remains of the one it replaces, whose drop was ended by a second crash.
  if (!error && !has_frm(to) && !has_partition_list(to) && !is_lost(to)) {
    error = drop_all_partitions(to);
    if (error == HA_ERR_NO_SUCH_TABLE) error = 0;
  }
  for (size_t i = 0; !error && i < partitions.size(); i++) {
    const std::string &path = partitions[i].first;
    error = rename_one(path, to + path.substr(from.size()));
  }
  if (error) return error;
  return rename_partition_list(from, to);
}

bool drops_by_name(THD *thd) {
  int command = thd == nullptr || is_recovering() ? SQLCOM_END : thd_sql_command(thd);
  return command == SQLCOM_DROP_TABLE || command == SQLCOM_DROP_DB;
}

// A prepared transaction that has lost its connection has no metadata lock. The error is told.
Error wait_to_drop(THD *thd, const TableDef &def) {
  if (def.temporary || def.discarded || def.indexes.empty()) return 0;
  TreeHandle primary;
  // One that cannot be opened is dropped all the same.
  if (open_tree(engine().db, tree_name(def.table_id, def.indexes[0].id), &primary)) return 0;
  if (Error error = engine().in_doubt.finish_commits()) return error;
  return ha_shale::wait_for_writers(thd, primary.get());
}

}  // namespace

// Whether another table that stays has this one for its parent.
bool ha_shale::has_children_elsewhere(THD *thd, const std::string &path) {
  if (thd == nullptr || is_recovering() || is_intermediate(path)) return false;
  if (!checks_foreign_keys(thd)) return false;
  const std::string folder = path.substr(0, path.rfind(FN_LIBCHAR) + 1);
  const bool with_database = thd_sql_command(thd) == SQLCOM_DROP_DB;
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_parent(path)) {
    if (key->child == path) continue;
    if (!with_database || key->child.compare(0, folder.size(), folder) != 0) return true;
  }
  return false;
}

// Whether a table, under the name that it gets, has what its foreign keys and its children need.
static bool has_indexes_of_keys(const std::string &from, const std::string &to) {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  const std::string known_as = engine().catalog.known_as(from);
  TableDef def;
  if (!keys.any() || is_intermediate(to) || engine().catalog.read(from, &def)) return true;
  for (const ForeignKeys::Shared &key : keys.of_child(from)) {
    if (index_with(def, key->columns) == nullptr) return false;
    if (key->parent == known_as && index_with(def, key->parent_columns) == nullptr) return false;
  }
  return fits_children(to, def) && (known_as == to || fits_children(known_as, def));
}

int ha_shale::delete_table(const char *name) {
  // Without a text: the server names no table then, as it does of InnoDB.
  if (has_children_elsewhere(ha_thd(), name)) return failed(HA_ERR_ROW_IS_REFERENCED, "");
  const bool lost = is_lost(name);
  // A CREATE TABLE that was refused for it is undone.
  if (lost && !drops_by_name(ha_thd())) return HA_ERR_NO_SUCH_TABLE;
  TableDef def;
  Error error = engine().catalog.read(name, &def);
  // Of partitions the server drops the others whatever becomes of one.
  if (!error && drops_by_name(ha_thd()) && !is_partition(name)) {
    error = wait_to_drop(ha_thd(), def);
  }
  if (!error) {
    error = shale_sql::drop_table(name, def);
  } else if (error == HA_ERR_NO_SUCH_TABLE && !is_partition(name) &&
             (lost || !has_partition_list(name))) {
    error = drop_all_partitions(name);
    if (!error && lost) delete_partition_list(name);
  }
  return note(error || !lost ? std::move(error) : note_not_lost(name));
}

static bool has_foreign_keys(const char *path) {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  return !keys.of_child(path).empty() || !keys.of_parent(path).empty();
}

int ha_shale::rename_table(const char *from, const char *to) {
  if (!is_recovering() && is_lost(to)) return refuse_over(to);
  if (!is_recovering() && checks_foreign_keys(ha_thd()) && !has_indexes_of_keys(from, to)) {
    return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  // CONVERT TABLE: no statement could name or drop the constraint of one partition.
  if (!is_recovering() && is_partition(to) && !is_partition(from) && has_foreign_keys(from)) {
    push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG,
                        "SHALE: a table with foreign keys, or that others refer to, does not "
                        "become a partition: drop them first");
    return HA_ERR_CANNOT_ADD_FOREIGN;
  }
  Error error = rename_one(from, to);
  if (!error || !is_recovering()) return note(std::move(error));
  if (error == HA_ERR_NO_SUCH_TABLE && !is_partition(from)) error = rename_all_partitions(from, to);
  if (error) note_not_renamed(from);
  return note(std::move(error));
}

// What a table is when it is empty: rows are written in the last form only from here on.
static TableDef emptied(TableDef def) {
  def.discarded = false;
  def.forms.erase(def.forms.begin(), def.forms.end() - 1);
  def.defaults.clear();
  return def;
}

// It costs the same at any size, and the space is free at once.
int ha_shale::truncate() {
  const TableDef &def = *shared_->def;
  if (def.temporary) return replace_trees(emptied(def), nullptr);
  if (thd_sql_command(ha_thd()) == SQLCOM_TRUNCATE && is_partition(shared_->path)) {
    return truncate_partitions();
  }
  if (int error = wait_for_prepared(ha_thd())) return error;
  if (def.discarded) {
    push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, ER_TABLESPACE_DISCARDED,
                        ER_THD(ha_thd(), ER_TABLESPACE_DISCARDED), table->s->table_name.str);
  }
  return replace_trees(emptied(def), nullptr);
}

// The server empties one partition after the other. With the first of them all are emptied, or
// none.
int ha_shale::truncate_partitions() {
  TableDef now;
  if (Error error = engine().catalog.read(shared_->path, &now)) return note(std::move(error));
  if (now.table_id != shared_->def->table_id) return open_replaced();
  Tables partitions;
  if (int error = note(partitions_of(table_of(shared_->path), &partitions))) return error;
  std::vector<Catalog::Replaced> replaced;
  for (const auto &[path, def] : partitions) {
    if (int error = note(wait_to_drop(ha_thd(), def))) return error;
    replaced.push_back({path, def, emptied(def)});
  }
  return replace_trees(std::move(replaced), nullptr);
}

int ha_shale::replace_trees(TableDef def, const Fill &fill) {
  return replace_trees({{shared_->path, *shared_->def, std::move(def)}}, fill);
}

int ha_shale::replace_trees(std::vector<Catalog::Replaced> replaced, const Fill &fill) {
  int error = 0;
  size_t made = 0;
  for (; error == 0 && made < replaced.size(); made++) {
    TableDef &def = replaced[made].is;
    if ((error = note(engine().catalog.new_table_id(&def.table_id)))) break;
    std::vector<TreeHandle> trees;
    error = note(make_table_trees(def, &trees));
    if (error == 0 && fill) error = fill(def, trees);
  }
  if (error == 0) error = note(engine().catalog.replace(replaced));
  if (error != 0) {
    for (size_t place = 0; place < made; place++) drop_table_trees(replaced[place].is);
    return error;
  }
  end_scan();
  for (const Catalog::Replaced &one : replaced) {
    SharedTable::forget(one.path, false);
    if (!one.is.temporary) SharedTable::note_new_trees(one.path);
    drop_table_trees(one.was);
  }
  return open_replaced();
}

// This handler goes on with the new trees; others are opened anew, for the statement has the table
// alone.
int ha_shale::open_replaced() {
  end_scan();
  std::shared_ptr<SharedTable> fresh;
  if (int error = note(SharedTable::open(shared_->path, table, &fresh))) return error;
  old_shared_ = std::move(shared_);
  shared_ = std::move(fresh);
  noted_write_ = 0;
  return open_indexes();
}

ulonglong ha_shale::table_version() const { return shared_ ? shared_->def->table_id : 0; }
