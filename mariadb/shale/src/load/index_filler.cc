// One scan of the table at one snapshot, whose rows give the entries of all new indexes.

#include "load/index_filler.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "tables/shared_table.h"

namespace shale_sql {

namespace {

// Rows between two looks at whether the statement was killed.
constexpr uint64_t kAsk = 1024;

// Adds a virtual column to those that are computed, after the ones that it is computed from.
void add_virtual(const TABLE *table, Field *field, std::vector<Field *> *columns) {
  if (field->stored_in_db()) return;
  if (std::find(columns->begin(), columns->end(), field) != columns->end()) return;
  std::vector<my_bitmap_map> words(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map));
  MY_BITMAP from;
  my_bitmap_init(&from, words.data(), table->s->fields);
  field->vcol_info->expr->walk(&Item::register_field_in_bitmap, true, &from);
  for (Field **other = table->vfield; *other != nullptr; other++) {
    if (bitmap_is_set(&from, (*other)->field_index)) add_virtual(table, *other, columns);
  }
  columns->push_back(field);
}

}  // namespace

IndexFiller::IndexFiller(THD *thd, TABLE *altered, const TableDef &def, shale_tree *primary,
                         std::vector<NewIndex> *indexes)
    : thd_(thd),
      altered_(altered),
      tree_(primary),
      indexes_(*indexes),
      primary_(altered, altered->s->primary_key, nullptr),
      rows_(altered, &primary_, std::make_shared<const TableDef>(def)) {
  size_t memory = sort_memory(thd, indexes_.size());
  for (const NewIndex &index : indexes_) {
    codecs_.push_back(std::make_unique<KeyCodec>(altered, index.number, &primary_));
    if (index.build != nullptr) {
      loaders_.emplace_back(index.build.get(), memory);
    } else {
      loaders_.emplace_back(index.tree.get(), false, memory);
    }
    const KEY &key = altered->key_info[index.number];
    for (uint part = 0; part < key.user_defined_key_parts; part++) {
      Field *field = altered->field[key.key_part[part].fieldnr - 1];
      add_virtual(altered, field, &computed_);
    }
  }
}

Error IndexFiller::take(std::string_view key, std::string_view value) {
  if (!rows_.unpack(key, value, nullptr, altered_->record[0])) {
    return Error(kErrDamagedRow, "a row of the table is damaged; CHECK TABLE says which");
  }
  return computed_.empty() ? Error() : compute();
}

// TABLE::update_virtual_fields would make warnings of errors, those of the strict mode too. An
// index is written: what could not be written into a row ends the statement.
Error IndexFiller::compute() {
  Query_arena backup;
  thd_->set_n_backup_active_arena(altered_->expr_arena, &backup);
  for (Field *field : computed_) field->vcol_info->expr->save_in_field(field, false);
  thd_->restore_active_arena(altered_->expr_arena, &backup);
  return thd_->is_error() ? HA_ERR_GENERIC : 0;
}

Error IndexFiller::add(std::string_view key, std::string_view value) {
  if (Error error = take(key, value)) return error;
  const uchar *row = altered_->record[0];
  for (size_t place = 0; place < codecs_.size(); place++) {
    bool has_null = false;
    key_.clear();
    value_.clear();
    codecs_[place]->pack_columns(row, &key_, &has_null);
    codecs_[place]->append_primary(key, has_null, &key_);
    codecs_[place]->pack_value(row, key, has_null, &value_);
    if (Error error = loaders_[place].add(key_, value_)) return error;
  }
  return 0;
}

Error IndexFiller::scan(ha_rows expected) {
  shale_snapshot *taken = nullptr;
  Error error = consume_error(shale_snapshot_new(engine().db, &taken, nullptr));
  if (error) return error;
  SnapshotHandle snapshot(taken);
  seen_from_ = SharedTable::count_new_trees();
  shale_scan *begun = nullptr;
  error = consume_error(shale_scan_new(tree_, taken, nullptr, 0, nullptr, 0, false, &begun));
  ScanHandle scan(begun);
  if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
  for (uint64_t count = 1; !error && at_row(begun); count++) {
    if (count % kAsk == 0) {
      if (thd_killed(thd_)) return HA_ERR_ABORTED_BY_USER;
      thd_progress_report(thd_, count, std::max<ha_rows>(expected, count));
    }
    size_t key_len = 0, value_len = 0;
    const char *key = static_cast<const char *>(shale_scan_key(begun, &key_len));
    const void *value = nullptr;
    if ((error = consume_error(shale_scan_value(begun, &value, &value_len)))) break;
    if ((error = add({key, key_len}, {static_cast<const char *>(value), value_len}))) break;
    error = consume_error(move_scan(begun, SHALE_NEXT));
  }
  return error;
}

// Puts the row that is one too many into the record, for the error's text.
Error IndexFiller::show_duplicate(size_t place) {
  const TreeLoader &loader = loaders_[place];
  duplicate_ = indexes_[place].number;
  std::string_view primary;
  if (!codecs_[place]->primary_of(loader.key(), loader.value(), &primary)) return 0;
  shale_bytes *found = nullptr;
  shale_error *error = shale_get(tree_, nullptr, primary.data(), primary.size(), &found);
  if (error != nullptr) return consume_error(error);
  if (found == nullptr) return 0;
  BytesHandle row(found);
  // Columns of any length are read from the record when the text is made.
  value_ = view_of(row);
  return take(primary, value_);
}

Error IndexFiller::run(ha_rows expected) {
  thd_progress_init(thd_, static_cast<uint>(1 + loaders_.size()));
  Error error = scan(expected);
  for (size_t place = 0; !error && place < loaders_.size(); place++) {
    thd_progress_next_stage(thd_);
    error = loaders_[place].finish(thd_);
    if (error == HA_ERR_FOUND_DUPP_KEY) {
      if (Error other = show_duplicate(place)) error = std::move(other);
    }
  }
  thd_progress_end(thd_);
  return error;
}

}  // namespace shale_sql
