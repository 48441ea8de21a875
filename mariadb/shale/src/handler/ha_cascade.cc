// What ON DELETE and ON UPDATE do to a child's rows. The child's own handler changes them, so that
// generated columns, long values and all indexes follow by the code that writes rows anyway.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "handler/child_table.h"
#include "tables/constraint_text.h"
#include "tables/links.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// As of InnoDB: one more is an error.
constexpr unsigned kMostLevels = 15;
constexpr unsigned kRowsBetweenLooks = 1024;

// Whether a BINARY column has the value without a byte of its own behind it, with which it would be
// another one.
bool is_as_long(Field *to, Field *from) {
  if (to->real_type() != MYSQL_TYPE_STRING || to->charset() != &my_charset_bin) return true;
  if (from->charset() != &my_charset_bin) return true;
  String value, given;
  return to->val_str(&value)->length() == from->val_str(&given)->length();
}

// Whether records have as many bytes for each value, which are not characters.
bool has_plain_bytes(const Field *field) {
  switch (field->real_type()) {
    case MYSQL_TYPE_STRING:
      return field->charset() == &my_charset_bin;
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_GEOMETRY:
      return false;
    default:
      return true;
  }
}

// A foreign key compares such columns by their bytes, and InnoDB copies these: so a child has its
// parent's number where an ENUM has other names, or a DOUBLE fewer digits.
bool have_same_bytes(const Field *a, const Field *b) {
  return has_plain_bytes(a) && has_plain_bytes(b) && a->pack_length() == b->pack_length();
}

// False: it does not fit.
bool copy_value(Field *to, Field *from) {
  if (have_same_bytes(to, from)) {
    memcpy(to->ptr, from->ptr, to->pack_length());
    return true;
  }
  THD *thd = to->table->in_use;
  const ha_rows cut = thd->cuted_fields;
  const enum_check_fields counts = thd->count_cuted_fields;
  Dummy_error_handler quiet;
  thd->push_internal_handler(&quiet);
  thd->count_cuted_fields = CHECK_FIELD_WARN;
  const bool fits = field_conv(to, from) == 0 && is_as_long(to, from);
  thd->count_cuted_fields = counts;
  thd->pop_internal_handler();
  thd->cuted_fields = cut;
  return fits;
}

// While it lives all columns of a table are read and written, but for generated ones that no row
// and no index has, nor others need that are computed: these are not, and so cannot fail.
class AllThatCounts {
 public:
  explicit AllThatCounts(TABLE *table)
      : table_(table), reads_(table->read_set), writes_(table->write_set) {
    table->use_all_columns();
    if (table->vfield == nullptr) return;
    bits_.resize(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map) + 1);
    my_bitmap_init(&all_, bits_.data(), table->s->fields);
    bitmap_set_all(&all_);
    for (Field **it = table->vfield; *it != nullptr; it++) {
      bitmap_clear_bit(&all_, (*it)->field_index);
    }
    table->column_bitmaps_set(&all_, &table->s->all_set);
    for (Field **it = table->vfield; *it != nullptr; it++) {
      const bool is_of_index = ((*it)->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG)) != 0;
      if (!(*it)->stored_in_db() && !is_of_index) continue;
      if (bitmap_fast_test_and_set(&all_, (*it)->field_index)) continue;
      // With what it is computed of, and so on.
      (*it)->vcol_info->expr->walk(&Item::register_field_in_read_map, true, table);
    }
  }
  ~AllThatCounts() { table_->column_bitmaps_set(reads_, writes_); }
  AllThatCounts(const AllThatCounts &) = delete;
  AllThatCounts &operator=(const AllThatCounts &) = delete;

 private:
  TABLE *table_;
  MY_BITMAP *reads_, *writes_;
  MY_BITMAP all_ = {};
  std::vector<my_bitmap_map> bits_;
};

}  // namespace

ForeignAction ha_shale::action_of(const Link &link, const uchar *is) const {
  return is == nullptr ? link.key->on_delete : link.key->on_update;
}

int ha_shale::too_deep(const ForeignKey &key) {
  push_warning_printf(ha_thd(), Sql_condition::WARN_LEVEL_WARN, HA_ERR_ROW_IS_REFERENCED,
                      "SHALE: Cannot delete/update rows with cascading foreign key constraints "
                      "that exceed max depth of %u. Please drop extra constraints and try again",
                      kMostLevels);
  return failed(HA_ERR_FK_DEPTH_EXCEEDED, told_of(key));
}

// Follows the rows of one foreign key whose entries begin with a key. The parent's row as it
// becomes is in its record[0].
int ha_shale::cascade(const Link &link, const std::string &key, const ParentRow &row) {
  Trx *trx = this->trx();
  const bool updates = row.is != nullptr;
  const bool comes_back = link.key->child == shared_->path || trx->is_updating(link.key->child);
  bool found = true;
  if (updates && comes_back) {
    if (int error = scan_other(link, key, &found)) return error;
    return found ? has_child(*link.key) : 0;
  }
  // Also if there are no rows there, as InnoDB has it.
  if (trx->levels() >= kMostLevels) return too_deep(*link.key);
  const ChildTable child(ha_thd(), link.key->child);
  TABLE *table_of_child = child.table();
  if (table_of_child == nullptr) return child.error() != 0 ? child.error() : has_child(*link.key);
  trx->begin_level(updates ? shared_->path : std::string());
  int error = 0;
  {
    const AllThatCounts columns(table_of_child);
    error = static_cast<ha_shale *>(table_of_child->file)->follow(link, key, row);
  }
  trx->end_level();
  if (error != HA_ERR_FOUND_DUPP_KEY) return error;
  const unsigned number = trx->duplicate();
  const TABLE_SHARE *share = table_of_child->s;
  trx->note_duplicate_of_child(share->table_name.str,
                               number < share->keys ? share->key_info[number].name.str : "");
  return HA_ERR_FOREIGN_DUPLICATE_KEY;
}

void ha_shale::LastRow::swap(LastRow *other) {
  std::swap(actions, other->actions);
  primary.swap(other->primary);
  value.swap(other->value);
  entry.swap(other->entry);
  computed.swap(other->computed);
  std::swap(locked_row, other->locked_row);
  std::swap(locked_entry, other->locked_entry);
}

// As the handler of the child: an outer level may be in the middle of one of its rows.
int ha_shale::follow(const Link &link, const std::string &key, const ParentRow &parent) {
  RowKeys was = std::move(was_), outer = std::move(is_);
  RowVersions version = std::move(version_);
  version_ = RowVersions();
  LastRow last;
  last.swap(&last_);
  RowWrite write = std::move(row_write_);
  row_write_ = RowWrite();
  std::vector<Online::Change> building = std::move(online_.changes), past = std::move(online_.past);
  online_.changes.clear();
  online_.past.clear();
  const ForeignKey *following = following_;
  following_ = link.key.get();
  const std::string first(reinterpret_cast<char *>(table->record[0]), table->s->reclength);
  const std::string second(reinterpret_cast<char *>(table->record[1]), table->s->reclength);
  const Locking locking = locking_;
  locking_.mode = SHALE_LOCK_EXCLUSIVE;
  int error = follow_rows(link, key, parent);
  locking_ = locking;
  memcpy(table->record[0], first.data(), first.size());
  memcpy(table->record[1], second.data(), second.size());
  following_ = following;
  was_ = std::move(was);
  is_ = std::move(outer);
  version_ = std::move(version);
  row_write_ = std::move(write);
  online_.changes = std::move(building);
  online_.past = std::move(past);
  last_.swap(&last);
  return error;
}

int ha_shale::follow_rows(const Link &link, const std::string &key, const ParentRow &parent) {
  const Index &index = indexes_[link.other_place];
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  std::string end = key;
  const bool has_end = next_of_length(&end);
  Cursor cursor;
  int error =
      note(cursor.begin(txn, index.tree, SHALE_LOCK_EXCLUSIVE, key, has_end, end, true, false));
  for (unsigned rows = 1; error == 0; rows++) {
    bool found = false;
    error = note(cursor.step(txn, false, &found));
    if (error != 0 || !found || !begins_with(cursor.key(), key)) return error;
    if (rows % kRowsBetweenLooks == 0 && thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
    bool past = false;
    if (link.past.is_told_by_entries()) error = note(link.past.has(txn, cursor.key(), &past));
    if (error != 0 || past) continue;
    std::string_view primary_key = cursor.key();
    if (!is_primary(index) &&
        !index.codec->primary_of(cursor.key(), cursor.value(), &primary_key)) {
      return failed(kErrDamagedRow, "an entry of an index of " + shared_->path + " is damaged");
    }
    last_.primary.assign(primary_key);
    const std::string primary = last_.primary;
    error = read_by_primary(primary, table->record[1], HA_ERR_KEY_NOT_FOUND);
    // One that this statement has removed on another way.
    if (error == HA_ERR_KEY_NOT_FOUND) {
      error = 0;
      continue;
    }
    if (error == 0 && is_past(table->record[1])) continue;
    if (error == 0) error = change_child(link, key, parent);
    trx()->note_action_on(shared_.get());
  }
  return error;
}

// The row is in record[1]. What the parent's update has left as it was stays in the child too,
// which may have written it in another way: in capitals, say.
int ha_shale::change_child(const Link &link, const std::string &of_parent,
                           const ParentRow &parent) {
  memcpy(table->record[0], table->record[1], table->s->reclength);
  if (table->vfield != nullptr) {
    // As of a row that is read: texts stay in their place when the new row's are computed.
    (void)compute_quietly(VCOL_UPDATE_FOR_READ);
    memcpy(table->record[1], table->record[0], table->s->reclength);
  }
  if (!has_entry(link.other_place, of_parent)) return 0;
  const ForeignAction action = action_of(link, parent.is);
  if (action == ForeignAction::kCascade && parent.is == nullptr) return end_child();
  bool keeps_past = false;
  for (size_t i = 0; i < link.key->columns.size(); i++) {
    Field *field = field_named(table->field, link.key->columns[i]);
    Field *from = field_named(parent.table->field, link.key->parent_columns[i]);
    if (field == nullptr || from == nullptr) return has_child(*link.key);
    const bool follows = action == ForeignAction::kCascade;
    if (follows && !is_changed(from, parent.was, parent.is)) continue;
    keeps_past |= table->versioned(VERS_TIMESTAMP) && !field->vers_update_unversioned();
    if (action == ForeignAction::kSetNull || from->is_null()) {
      if (!field->real_maybe_null()) return has_child(*link.key);
      field->set_null();
      continue;
    }
    field->set_notnull();
    if (!copy_value(field, from)) return has_child(*link.key);
  }
  compute_for_write();
  // Told from its old form without the time.
  keeps_past = keeps_past && !rows_->same(table->record[0], table->record[1]);
  if (keeps_past) table->vers_start_field()->set_time();
  int error = update_row(table->record[1], table->record[0]);
  if (error == HA_ERR_RECORD_IS_THE_SAME) return 0;
  return error == 0 && keeps_past ? keep_past() : error;
}

// Whether the row in record[1] has an entry that begins so: an action that came in between may have
// given it another one since the entry was met.
bool ha_shale::has_entry(size_t place, const std::string &begin) {
  const Index &index = indexes_[place];
  if (is_primary(index)) return true;
  std::string entry;
  bool has_null = false;
  index.codec->pack_columns(table->record[1], &entry, &has_null);
  return begins_with(entry, begin);
}

// A value that does not fit is nobody's who writes the parent: it was so before.
void ha_shale::compute_for_write() {
  if (table->vfield == nullptr) return;
  // What it is computed of has not changed, but perhaps the time at which a row of the past ends.
  (void)compute_quietly(VCOL_UPDATE_FOR_WRITE);
  // Actions on this very table may compute others before this row is written.
  keep_computed(true);
}

namespace {
bool is_there(int error) {
  return error == HA_ERR_FOUND_DUPP_KEY || error == HA_ERR_FOUND_DUPP_UNIQUE ||
         error == HA_ERR_FOREIGN_DUPLICATE_KEY;
}
}  // namespace

// Deletes the row of both records as the server does: a current row of a system-versioned table
// becomes one of the past, if there is none of the same time. A row that begins later than now
// stays too, as in InnoDB: a replica's row events have whole seconds, and only cascades ask it the
// time.
int ha_shale::end_child() {
  if (!table->versioned(VERS_TIMESTAMP)) return delete_row(table->record[1]);
  table->vers_end_field()->set_time();
  compute_for_write();
  const int error = update_row(table->record[1], table->record[0]);
  return is_there(error) ? delete_row(table->record[1]) : error;
}

// After an update: what the row was is one of the past, unless it was written at the same time.
int ha_shale::keep_past() {
  memcpy(table->record[0], table->record[1], table->s->reclength);
  Field *start = table->vers_start_field(), *end = table->vers_end_field();
  end->set_time();
  const int order = start->cmp(start->ptr, end->ptr);
  if (order == 0) return 0;
  if (has_many_) trx()->kept_past().note(shared_->def->table_id, is_.primary);
  compute_for_write();
  Field *number = table->next_number_field;
  table->next_number_field = nullptr;  // it has one
  const int error = write_row(table->record[0]);
  table->next_number_field = number;
  // Where time goes back, several rows of the past may end at once: the first stays.
  return order > 0 && is_there(error) ? 0 : error;
}

// Whether the update ends a row whose past an action has kept at this very time: then the server
// deletes it instead. The keys are those of before and after.
bool ha_shale::ends_at_action(const uchar *old_row, const uchar *new_row) {
  KeptPast &kept = trx()->kept_past();
  const uint64_t id = shared_->def->table_id;
  if (!kept.has(id, was_.primary)) return false;
  const Field *start = table->vers_start_field(), *end = table->vers_end_field();
  if (!is_past(old_row) && is_past(new_row)) {
    return start->cmp(start->ptr_in_record(new_row), end->ptr_in_record(new_row)) == 0;
  }
  // To InnoDB a row with another text is another document.
  const bool is_same = has_same_texts(old_row, new_row);
  if (!is_same || was_.primary != is_.primary) kept.forget(id, was_.primary);
  if (is_same) kept.note(id, is_.primary);
  return false;
}

bool ha_shale::has_same_texts(const uchar *was, const uchar *is) const {
  for (uint number = 0; number < table->s->keys; number++) {
    const KEY &key = table->key_info[number];
    if ((key.flags & HA_FULLTEXT) != 0 && !has_same_texts(table, key, was, is)) return false;
  }
  return true;
}

bool ha_shale::has_same_texts(const TABLE *table, const KEY &key, const uchar *was,
                              const uchar *is) {
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    if (is_changed(table->field[key.key_part[part].fieldnr - 1], was, is)) return false;
  }
  return true;
}

bool ha_shale::get_foreign_dup_key(char *table_name, uint table_bytes, char *key_name,
                                   uint key_bytes) {
  const std::string &child = trx()->duplicate_child(), &key = trx()->duplicate_key();
  if (child.empty()) return false;
  strmake(table_name, child.c_str(), table_bytes - 1);
  strmake(key_name, key.c_str(), key_bytes - 1);
  return true;
}
