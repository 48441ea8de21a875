// A table that moves between servers: FLUSH TABLES ... FOR EXPORT writes it into a file beside its
// .frm, which is there until UNLOCK TABLES; ALTER TABLE ... DISCARD TABLESPACE makes room for such
// a file, and IMPORT TABLESPACE makes the table of it.

#include "handler/ha_shale.h"

#include "backup/backup_source.h"
#include "backup/table_copy.h"
#include "codec/index_defs.h"
#include "codec/schema_words.h"
#include "codec/table_bytes.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "engine/table_files.h"
#include "txn/in_doubt.h"

using namespace shale_sql;

namespace {

// As users know the table: `test/t`.
std::string name_of(const TABLE *table) {
  return std::string(table->s->db.str) + "/" + table->s->table_name.str;
}

// Why rows and keys of a file are not those that the table would write; empty: they are.
std::string difference(TABLE *table, const TableCopy &copy) {
  std::string found = first_difference(copy.schema, schema_words(table));
  if (!found.empty()) return found;
  if (!has_indexes_of(copy.def, table)) return "the file has other indexes";
  KeyCodec primary(table, table->s->primary_key, nullptr);
  const std::vector<ColumnDef> columns = RowCodec::columns_of(table, &primary);
  const std::vector<ColumnDef> &there = copy.def.forms.back();
  auto same = [](const ColumnDef &a, const ColumnDef &b) {
    return a.nullable == b.nullable && a.fixed_bytes == b.fixed_bytes && a.in_key == b.in_key;
  };
  if (!std::equal(columns.begin(), columns.end(), there.begin(), there.end(), same)) {
    return "the file has columns that are stored otherwise";
  }
  TableDef described = copy.def;
  describe_indexes(table, &described);
  return bytes_of(described) == bytes_of(copy.def) ? "" : "the file has keys of another form";
}

// The foreign keys of a table whose rows come without their parents, if the session asks for these.
// Nobody changes the parents' definitions from here on: they are looked up in the trees of now.
int keys_to_prove(THD *thd, const std::string &path, ForeignKeys::List *keys) {
  if (!checks_foreign_keys(thd)) return 0;
  for (ForeignKeys::Shared key : engine().catalog.foreign_keys().of_child(path)) {
    if (int error = lock_parent(thd, &key)) return error;
    auto unproven = std::make_shared<ForeignKey>(*key);
    unproven->unproven = true;
    keys->push_back(std::move(unproven));
  }
  return 0;
}

}  // namespace

int ha_shale::tell_discarded() {
  my_error(ER_TABLESPACE_DISCARDED, MYF(0), table->s->table_name.str);
  return HA_ERR_TABLESPACE_MISSING;
}

// Nobody writes to the table.
int ha_shale::export_rows(THD *thd) {
  if ((thd->lex->type & REFRESH_FOR_EXPORT) == 0) return 0;
  if (is_sequence()) {
    my_error(ER_ILLEGAL_HA, MYF(0), table_type(), table->s->db.str, table->s->table_name.str);
    return HA_ERR_WRONG_COMMAND;
  }
  // A prepared transaction that has lost its connection has no metadata lock.
  if (int error = wait_for_prepared(thd)) return error;
  Error error = shared_->keep_number_exactly();
  TableCopy copy;
  copy.schema = schema_words(table);
  copy.def = *shared_->def;
  const Catalog &catalog = engine().catalog;
  if (!error) error = catalog.read_number('A', copy.def.table_id, &copy.next_number);
  if (!error) error = catalog.read_number('H', copy.def.table_id, &copy.next_hidden);
  if (!error) error = write_table(thd, moved_file(shared_->path), copy, shared_->trees);
  if (!error) {
    is_exported_ = true;
    return 0;
  }
  const int number = error.number();
  if (number == HA_ERR_ABORTED_BY_USER) {
    thd->send_kill_message();
  } else if (number == kErrEngine) {
    my_printf_error(ER_IO_WRITE_ERROR, "SHALE: %s", MYF(0), error.text().c_str());
  } else {
    note_failure(std::move(error));
    print_error(number, MYF(0));
  }
  return number;
}

// Waits for those who have written to the table and hold no metadata lock; the error is told.
int ha_shale::wait_for_prepared(THD *thd) {
  if (shared_->def->discarded) return 0;
  Error error = engine().in_doubt.finish_commits();
  if (!error) error = wait_for_writers(thd, primary().tree);
  const int number = error.number();
  if (number != 0 && !thd->is_error()) {
    note_failure(std::move(error));
    print_error(number, MYF(0));
  }
  return number;
}

void ha_shale::end_export() {
  is_exported_ = false;
  my_delete(moved_file(shared_->path).c_str(), MYF(0));
}

int ha_shale::discard_or_import_tablespace(my_bool discard) {
  if (shared_->def->temporary) {
    my_error(ER_CANNOT_DISCARD_TEMPORARY_TABLE, MYF(0));
    return HA_ERR_GENERIC;
  }
  if (is_sequence()) return HA_ERR_WRONG_COMMAND;
  if (int error = wait_for_prepared(ha_thd())) return error;
  return tell_server(ha_thd(), discard ? discard_rows() : import_rows());
}

int ha_shale::discard_rows() {
  if (has_children_elsewhere(ha_thd(), shared_->path)) return failed(HA_ERR_ROW_IS_REFERENCED, "");
  TableDef def = *shared_->def;
  if (def.discarded) {
    push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, ER_TABLESPACE_MISSING,
                        ER_THD(ha_thd(), ER_TABLESPACE_MISSING), name_of(table).c_str());
    return 0;
  }
  // What a server that was killed while it exported has left is not to be imported.
  const std::string left = moved_file(shared_->path);
  if (my_delete(left.c_str(), MYF(0)) != 0 && my_errno != ENOENT) {
    my_error(ER_CANT_DELETE_FILE, MYF(0), left.c_str(), my_errno);
    return HA_ERR_GENERIC;
  }
  def.discarded = true;
  return replace_trees(std::move(def), nullptr);
}

// The error is told, but for those that print_error tells.
int ha_shale::refuse_import(const Error &error) {
  const std::string name = name_of(table);
  if (error == HA_ERR_TABLESPACE_MISSING) {
    my_printf_error(ER_TABLESPACE_MISSING, "Tablespace is missing for table '%s': %s", MYF(0),
                    name.c_str(), error.text().c_str());
    return HA_ERR_GENERIC;
  }
  if (error != kErrEngine) return failed(error.number(), error.text());
  my_printf_error(ER_INNODB_IMPORT_ERROR, "ALTER TABLE '%s' IMPORT TABLESPACE failed: %s", MYF(0),
                  name.c_str(), error.text().c_str());
  return HA_ERR_GENERIC;
}

// The table is discarded until all of the file is in new trees, which one write of the catalog
// makes the table's.
int ha_shale::import_rows() {
  const std::string name = name_of(table);
  if (!shared_->def->discarded) {
    my_error(ER_TABLESPACE_EXISTS, MYF(0), name.c_str());
    return HA_ERR_GENERIC;
  }
  const std::string backup = settings::import_from(ha_thd());
  const std::string path = backup.empty() ? moved_file(shared_->path) : backup;
  std::unique_ptr<TableSource> source;
  if (backup.empty()) {
    source = std::make_unique<TableReader>(path);
  } else {
    source = std::make_unique<BackupSource>(ha_thd(), backup, shared_->path);
  }
  TableCopy copy;
  if (Error error = source->begin(&copy)) return refuse_import(error);
  const std::string differs = difference(table, copy);
  if (!differs.empty()) {
    my_printf_error(ER_TABLE_SCHEMA_MISMATCH, "Schema mismatch (%s: %s)", MYF(0), path.c_str(),
                    differs.c_str());
    return HA_ERR_GENERIC;
  }
  TableDef def = copy.def;
  def.temporary = def.discarded = false;
  // What is the table's own.
  def.codec = shared_->def->codec;
  def.dictionary = shared_->def->dictionary;
  def.version = shared_->def->version;
  if (int error = import_into(std::move(def), copy, source.get())) return error;
  // Handlers that the server keeps open know the old trees. It closes them for DISCARD only.
  table->s->tdc->flush(ha_thd(), true);
  if (backup.empty() && my_delete(path.c_str(), MYF(0)) != 0) {
    push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, ER_CANT_DELETE_FILE,
                        ER_THD(ha_thd(), ER_CANT_DELETE_FILE), path.c_str(), my_errno);
  }
  return 0;
}

int ha_shale::import_into(TableDef def, const TableCopy &copy, TableSource *source) {
  THD *thd = ha_thd();
  return replace_trees(std::move(def), [&](const TableDef &is, const auto &trees) {
    if (Error error = source->fill(thd, trees)) return refuse_import(error);
    ForeignKeys::List keys;
    if (int error = keys_to_prove(thd, shared_->path, &keys)) return error;
    if (int error = prove(keys, shared_->path, is)) return error;
    const std::pair<char, uint64_t> numbers[] = {{'A', copy.next_number}, {'H', copy.next_hidden}};
    for (const auto &[kind, number] : numbers) {
      if (number == 0) continue;
      if (int error = note(engine().catalog.write_number(kind, is.table_id, number))) return error;
    }
    return 0;
  });
}
