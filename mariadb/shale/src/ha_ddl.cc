// Creating, dropping, renaming, emptying tables. Each is one change of the catalog: trees are made
// before it and dropped after it, so that a crash leaves trees without a table at most, which the next start
// drops.

#include "ha_shale.h"

#include "ddl_recovery.h"
#include "engine.h"
#include "errors.h"
#include "options.h"
#include "trx.h"

using namespace shale_sql;

namespace {

bool is_fulltext_or_spatial(const KEY &key) {
  return (key.flags & (HA_FULLTEXT | HA_SPATIAL)) != 0;
}

int refuse(const char *what) {
  my_error(ER_ILLEGAL_HA_CREATE_OPTION, MYF(0), "SHALE", what);
  return HA_ERR_UNSUPPORTED;
}

int make_trees(const TableDef &def, std::vector<TreeHandle> *trees) {
  for (const IndexDef &index : def.indexes) {
    TreeHandle tree;
    std::string name = tree_name(def.table_id, index.id);
    if (int error = create_tree(name, def.codec, def.dictionary, &tree)) return error;
    trees->push_back(std::move(tree));
  }
  return 0;
}

void drop_trees(const TableDef &def) {
  for (const IndexDef &index : def.indexes) {
    std::string name = tree_name(def.table_id, index.id);
    ErrorHandle error(shale_tree_drop(engine.db, name.c_str()));
    if (error && shale_error_kind_of(error.get()) != SHALE_NO_SUCH_TREE) {
      log_error("tree " + name + " of a dropped table stays until the next start: " +
                shale_error_text(error.get()));
    }
  }
}

// Refuses what would not be kept, instead of leaving it out without a word.
int check_definition(TABLE *form, HA_CREATE_INFO *info) {
  for (uint number = 0; number < form->s->keys; number++) {
    if (is_fulltext_or_spatial(form->key_info[number])) {
      return refuse("FULLTEXT and SPATIAL indexes");
    }
  }
  if (info->data_file_name != nullptr) return refuse("DATA DIRECTORY");
  if (info->index_file_name != nullptr) return refuse("INDEX DIRECTORY");
  THD *thd = form->in_use;
  // Foreign keys are not in `form`: the statement's own list has them.
  if (thd != nullptr && (thd_sql_command(thd) == SQLCOM_CREATE_TABLE ||
                         thd_sql_command(thd) == SQLCOM_ALTER_TABLE)) {
    List_iterator<Key> keys(thd->lex->alter_info.key_list);
    while (Key *key = keys++) {
      if (key->type == Key::FOREIGN_KEY) return refuse("FOREIGN KEY");
    }
  }
  return 0;
}

}  // namespace

int shale_sql::drop_table(const std::string &path, const TableDef &def) {
  if (int error = engine.catalog.erase(path, def)) return error;
  SharedTable::note_gone(path);
  drop_trees(def);
  return 0;
}

int ha_shale::create(const char *name, TABLE *form, HA_CREATE_INFO *info) {
  if (int error = check_definition(form, info)) return error;
  std::string codec = codec_of(form->s->option_struct), why;
  if (!check_codec(codec, &why)) {
    my_printf_error(ER_ILLEGAL_HA_CREATE_OPTION, "SHALE: COMPRESSION='%s': %s", MYF(0),
                    codec.c_str(), why.c_str());
    return HA_ERR_UNSUPPORTED;
  }
  TableDef def;
  if (int error = engine.catalog.new_table_id(&def.table_id)) return error;
  def.codec = codec;
  def.dictionary = has_dictionary(form->s->option_struct);
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
  std::vector<TreeHandle> trees;
  int error = make_trees(def, &trees);
  if (error == 0 && info->auto_increment_value > 1) {
    error = engine.catalog.write_number('A', def.table_id, info->auto_increment_value);
  }
  if (error == 0) error = engine.catalog.write(name, def);
  if (error != 0) drop_trees(def);
  SharedTable::forget(name, false);
  // A temporary table is seen by the transaction that makes it.
  if (error == 0 && !def.temporary) SharedTable::note_new_trees(name);
  return error;
}

int ha_shale::delete_table(const char *name) {
  TableDef def;
  if (int error = engine.catalog.read(name, &def)) return error;
  return shale_sql::drop_table(name, def);
}

int ha_shale::rename_table(const char *from, const char *to) {
  int error = engine.catalog.rename(from, to);
  if (error == 0) SharedTable::note_renamed(from, to);
  return error;
}

// New trees in place of the old ones: it costs the same at any size, and the space is free at once.
int ha_shale::truncate() {
  const TableDef was = *shared_->def;
  TableDef def = was;
  if (int error = engine.catalog.new_table_id(&def.table_id)) return error;
  // Rows are written in the last form only from here on.
  def.forms.erase(def.forms.begin(), def.forms.end() - 1);
  def.defaults.clear();
  std::vector<TreeHandle> trees;
  int error = make_trees(def, &trees);
  if (error == 0) error = engine.catalog.replace(shared_->path, was, def);
  if (error != 0) {
    drop_trees(def);
    return error;
  }
  std::string path = shared_->path;
  end_scan();
  SharedTable::forget(path, false);
  if (!def.temporary) SharedTable::note_new_trees(path);
  drop_trees(was);
  // This handler goes on with the new trees; others are opened anew, for TRUNCATE has the table alone.
  std::shared_ptr<SharedTable> fresh;
  if ((error = SharedTable::open(path, &fresh))) return error;
  old_shared_ = std::move(shared_);
  shared_ = std::move(fresh);
  return open_indexes();
}

ulonglong ha_shale::table_version() const { return shared_ ? shared_->def->table_id : 0; }
