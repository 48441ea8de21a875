// Loading many rows: copies into tables that nobody sees go past the log, sorted; loads that may be
// cut into parts commit some megabytes at a time.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "txn/trx.h"
#include "words/word_codec.h"

using namespace shale_sql;

namespace {

// What a part of a load has at least, before it is committed.
constexpr size_t kPartBytes = 4 << 20;
// What entries of words of a statement take before they are written, and how many one call writes.
constexpr size_t kWordBytes = 8 << 20;
constexpr size_t kWordsOfCall = 1024;

// The server passes over errors at the end of these, so rows are written one after the other.
constexpr uint kRowByRow = ALTER_PARTITION_ADD | ALTER_PARTITION_COALESCE |
                           ALTER_PARTITION_REORGANIZE | ALTER_PARTITION_REBUILD |
                           ALTER_PARTITION_TABLE_REORG | ALTER_PARTITION_REMOVE;

size_t partitions_of(const TABLE *table) {
  return table->part_info == nullptr ? 1 : table->part_info->get_tot_partitions();
}

}  // namespace

// ALTER TABLE or CREATE TABLE ... SELECT begins to fill this table. A temporary table is a part of
// the transaction, and stays with what that sees.
void ha_shale::begin_copy(bool ignore) {
  THD *thd = ha_thd();
  bool alters = thd_sql_command(thd) != SQLCOM_CREATE_TABLE;
  if (shared_->def->temporary || table->s->table_type == TABLE_TYPE_SEQUENCE) return;
  // Rows that are in the way are left out by IGNORE, or looked up by the server itself.
  if (ignore || table->s->long_unique_table || table->s->period.unique_keys != 0 ||
      (alters && (thd->lex->alter_info.partition_flags & kRowByRow) != 0)) {
    load_.in_parts = alters ? Load::Parts::kOfCopy : Load::Parts::kNone;
    if (alters) trx()->note_copy(shared_);
    return;
  }
  load_.copy = std::make_unique<TableLoader>();
  size_t memory = sort_memory_of_each(thd, indexes_.size() * partitions_of(table));
  for (const Index &index : indexes_) {
    load_.copy->trees.emplace_back(index.tree, is_primary(index), memory);
  }
}

int ha_shale::load_row(const uchar *row, const RowKeys &keys) {
  std::vector<TreeLoader> &trees = load_.copy->trees;
  value_.clear();
  rows_->pack(row, &value_);
  int error = note(trees[0].add(keys.primary, value_));
  if (error == HA_ERR_FOUND_DUPP_KEY) trx()->note_duplicate(primary().number);
  for (size_t place = 1; error == 0 && place < trees.size(); place++) {
    if (indexes_[place].many != nullptr) {
      for (const ManyEntry &entry : keys.many[place]) {
        if (error == 0) error = note(trees[place].add(entry.key, entry.value));
      }
      continue;
    }
    error = note(trees[place].add(keys.keys[place], keys.values[place]));
  }
  return error;
}

// Puts the row that is one too many into the record, from which the server makes the error's text.
int ha_shale::show_duplicate(size_t place) {
  const TreeLoader &tree = load_.copy->trees[place];
  trx()->note_duplicate(indexes_[place].number);
  std::string_view key = tree.key(), value = tree.value();
  BytesHandle row;
  if (place != 0) {
    if (!indexes_[place].codec->primary_of(key, value, &key)) return 0;
    shale_bytes *found = nullptr;
    shale_error *error = shale_get(primary().tree, nullptr, key.data(), key.size(), &found);
    if (error != nullptr) return consume_error(error);
    if (found == nullptr) return 0;
    row.reset(found);
    value = view_of(row);
  }
  last_.value.assign(value);
  last_.primary.assign(key);
  if (!rows_->unpack(last_.primary, last_.value, nullptr, table->record[0])) {
    return failed(kErrDamagedRow, "a row that was just written is damaged");
  }
  if (table->vfield != nullptr) table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
  return 0;
}

int ha_shale::end_copy() {
  const bool by_row = load_.in_parts == Load::Parts::kOfCopy;
  load_.in_parts = Load::Parts::kNone;
  if (!load_.copy) return by_row ? prove_copy() : 0;
  int error = 0;
  for (size_t place = 0; error == 0 && place < load_.copy->trees.size(); place++) {
    error = note(load_.copy->trees[place].finish(ha_thd(), nullptr));
    if (error == HA_ERR_FOUND_DUPP_KEY) {
      if (int other = show_duplicate(place)) error = other;
    }
  }
  load_.copy.reset();
  if (error == 0) error = prove_copy();
  if (error == 0) error = note(shared_->keep_number());
  SharedTable::note_new_trees(shared_->path);
  shared_->trees_epoch = SharedTable::tree_epoch();
  return error;
}

int ha_shale::prove_copy() {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  if (!keys.any()) return 0;
  const std::string &path = shared_->path;
  return prove(keys.of_child(path), engine().catalog.known_as(path), *shared_->def);
}

// Whether the statement only inserts rows, and nothing reads or changes them before it is at its
// end: the server begins no bulk insert where a function or a trigger could.
void ha_shale::begin_words(ha_rows rows) {
  THD *thd = ha_thd();
  load_.words.clear();
  if (!has_many_ || rows == 1 || thd->slave_thread || table->triggers != nullptr ||
      thd->locked_tables_mode > LTM_LOCK_TABLES || settings::bulk_load(thd)) {
    return;
  }
  LEX *lex = thd->lex;
  const int command = thd_sql_command(thd);
  const bool inserts = command == SQLCOM_LOAD || command == SQLCOM_INSERT ||
                       command == SQLCOM_INSERT_SELECT;
  if (inserts && lex->duplicates == DUP_ERROR && !lex->has_returning()) {
    load_.words.resize(indexes_.size());
  }
}

// The row is written. Its words are once those of many rows take some megabytes.
int ha_shale::add_words(const uchar *row, std::string_view primary_key) {
  for (size_t place = 1; place < indexes_.size(); place++) {
    const ManyCodec *many = indexes_[place].many.get();
    if (many == nullptr) continue;
    load_.words[place].add(static_cast<const WordCodec &>(*many), row, primary_key);
  }
  // Each partition has a handler, and words, of its own.
  return write_words(kWordBytes / partitions_of(table));
}

// Writes them if they take more than so many bytes. No locks: nobody has these rows.
int ha_shale::write_words(size_t most) {
  size_t bytes = 0;
  for (const WordBuffer &words : load_.words) bytes += words.bytes();
  if (bytes <= most) return 0;
  shale_txn *txn = nullptr;
  if (int error = note(trx()->before_write(&txn, !shared_->def->temporary))) return error;
  std::vector<std::string> keys(kWordsOfCall);
  RowWrite::Refused refused;
  row_write_.begin(txn, nullptr);
  for (size_t place = 1; place < load_.words.size(); place++) {
    size_t used = 0;
    Error error;
    load_.words[place].each([&](const std::string &form, const std::string &primary_key,
                                std::string_view value) {
      keys[used].assign(form).append(primary_key);
      row_write_.add(place, indexes_[place].tree, SHALE_ACTION_PUT_UNLOCKED, keys[used], value);
      if (++used < kWordsOfCall) return true;
      used = 0;
      error = row_write_.apply(&refused);
      return !error;
    });
    if (!error) error = row_write_.apply(&refused);
    load_.words[place].clear();
    if (error) return note(std::move(error));
  }
  return 0;
}

// What a statement that has failed has inserted is undone.
int ha_shale::end_words() {
  int error = 0;
  if (!load_.words.empty() && !ha_thd()->is_error()) error = write_words(0);
  load_.words.clear();
  if (error != 0) my_errno = error = tell_server(ha_thd(), error);
  return error;
}

// Loads that the user allows to be cut into parts.
void ha_shale::start_bulk_insert(ha_rows rows, uint) {
  THD *thd = ha_thd();
  parents_ahead_.begin(rows);
  begin_words(rows);
  if (!settings::bulk_load(thd) || in_transaction(thd) || shared_->def->temporary) return;
  // A part would be there before the registry has its transaction's id.
  if (table->versioned(VERS_TRX_ID)) return;
  int command = thd_sql_command(thd);
  bool loads = command == SQLCOM_LOAD || command == SQLCOM_INSERT || command == SQLCOM_REPLACE ||
               command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT;
  load_.in_parts = loads ? Load::Parts::kOfLoad : Load::Parts::kNone;
  load_.part_bytes = 0;
}

int ha_shale::end_bulk_insert() {
  parents_ahead_.begin(0);
  const int error = end_words();
  // A copy goes on until its own end; the last part is committed as a statement is.
  if (!alters_table(ha_thd())) load_.in_parts = Load::Parts::kNone;
  return error;
}

int ha_shale::end_part(size_t bytes) {
  load_.part_bytes += bytes;
  if (load_.in_parts == Load::Parts::kNone || load_.part_bytes < kPartBytes) return 0;
  load_.part_bytes = 0;
  return note(trx()->commit_part(load_.in_parts == Load::Parts::kOfLoad));
}
