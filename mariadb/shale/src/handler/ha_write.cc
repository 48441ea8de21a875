// Writing rows.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "txn/trx.h"

using namespace shale_sql;

// The keys of a row in all indexes, its hidden key aside, and those of words if they are not
// written later.
void ha_shale::pack_keys(const uchar *row, RowKeys *keys) const {
  pack_primary(row, keys);
  pack_entries(row, nullptr, keys);
}

void ha_shale::pack_primary(const uchar *row, RowKeys *keys) const {
  if (shared_->def->hidden_key) return;
  keys->primary.clear();
  primary().codec->pack_columns(row, &keys->primary);
}

// Of what it changes of a row. Texts that stay have the words that are there: long ones take
// milliseconds to be told apart. A row that others have changed since the snapshot has them written
// anew (ha_rewrite.cc).
int ha_shale::pack_change(const uchar *old_row, const uchar *new_row) {
  pack_primary(old_row, &was_);
  pack_primary(new_row, &is_);
  bool stays = has_many_ && was_.primary == is_.primary;
  if (stays && watches_rows()) {
    shale_txn *txn = nullptr;
    bool changed = false;
    if (int error = note(trx()->get(&txn))) return error;
    if (int error = note(consume_error(shale_txn_wrote(txn, primary().tree, was_.primary.data(),
                                                       was_.primary.size(), nullptr, &changed)))) {
      return error;
    }
    stays = !changed;
  }
  // Each before it is packed: long values that are computed are of one row at a time.
  if (int error = compute_for_keys(old_row)) return error;
  pack_entries(old_row, stays ? new_row : nullptr, &was_);
  if (int error = compute_for_keys(new_row)) return error;
  pack_entries(new_row, stays ? old_row : nullptr, &is_);
  return 0;
}

// `other`: the same row before or after a change, whose words are no others where its texts are
// not.
void ha_shale::pack_entries(const uchar *row, const uchar *other, RowKeys *keys) const {
  size_t count = indexes_.size();
  keys->keys.resize(count);
  keys->values.resize(count);
  keys->has_null.assign(count, false);
  if (has_many_) keys->many.resize(count);
  for (size_t place = 1; place < count; place++) {
    keys->keys[place].clear();
    keys->values[place].clear();
    if (indexes_[place].many != nullptr) {
      const KEY &key = table->key_info[indexes_[place].number];
      if (other != nullptr && has_same_texts(table, key, row, other)) {
        keys->many[place].clear();
      } else if (load_.words.empty()) {
        indexes_[place].many->pack(row, keys->primary, &keys->many[place]);
      }
      continue;
    }
    const KeyCodec &codec = *indexes_[place].codec;
    bool has_null = false;
    codec.pack_columns(row, &keys->keys[place], &has_null);
    keys->has_null[place] = has_null;
    codec.append_primary(keys->primary, has_null, &keys->keys[place]);
    codec.pack_value(row, keys->primary, has_null, &keys->values[place]);
  }
}

int ha_shale::duplicate(size_t place, std::string_view primary) {
  const Index &index = indexes_[place];
  trx()->note_duplicate(index.number);
  duplicate_primary_.assign(primary);
  set_ref(primary, dup_ref);
  return HA_ERR_FOUND_DUPP_KEY;
}

// A duplicate that stays as it is may be found by others too; REPLACE and ON DUPLICATE KEY UPDATE
// change it next.
shale_action ha_shale::insert_action() const {
  return ha_thd()->lex->duplicates == DUP_ERROR ? SHALE_ACTION_INSERT_OR_SHARE
                                                : SHALE_ACTION_INSERT;
}

// Who replaces or updates a row that keeps another out reads it next. It is locked to the end of
// the transaction, so that nobody else changes it: it is not looked up again. Of an index's entry
// the row has not been read.
void ha_shale::keep_refused(RowWrite::Refused *found) {
  if (insert_action() != SHALE_ACTION_INSERT || row_write_.is_in_parts()) return;
  refused_by_ = std::move(found->value);
  refused_in_ = trx()->ended();
  refused_after_ = trx()->actions_on(shared_.get());
}

// Once: what is done with the row then changes it.
bool ha_shale::take_refused(std::string_view key, BytesHandle *value) {
  BytesHandle kept = std::move(refused_by_);
  if (lock_mode() != SHALE_LOCK_EXCLUSIVE || key != duplicate_primary_) return false;
  if (refused_in_ != trx()->ended() || refused_after_ != trx()->actions_on(shared_.get())) {
    return false;
  }
  *value = std::move(kept);
  return true;
}

int ha_shale::begin_row() {
  refused_by_.reset();
  Trx *trx = this->trx();
  // Within LOCK TABLES nobody resets a child's handler between statements.
  const uint64_t transaction = trx->ended() + 1;
  if (noted_write_ != transaction) {
    trx->note_writer(shared_->changes);
    if (int error = begin_references()) return error;
    noted_write_ = transaction;
  }
  shale_txn *txn = nullptr;
  if (int error = note(trx->before_write(&txn, !shared_->def->temporary))) return error;
  row_write_.begin(txn, watches_rows() ? primary().tree : nullptr);
  return 0;
}

// Without other indexes no entry has to follow a row. At READ COMMITTED each statement has a
// snapshot of its own, but functions and triggers have that of the statement that they are of.
bool ha_shale::watches_rows() {
  return indexes_.size() > 1 && (!trx()->read_committed() || ha_thd()->in_sub_stmt != 0);
}

// What the engine says of the writes: 0, an error, a duplicate, or a parent that is not there.
int ha_shale::note_applied(int error, RowWrite::Refused *found) {
  if (row_write_.changed()) trx()->note_rewritten();
  if (error != 0) return error;
  if (found->parent != nullptr) return parent_is_missing(*found->parent);
  if (!found->value) {
    for (const RowWrite::Required &parent : row_write_.required()) {
      trx()->known_parents().add(parent.link->number, parent.key);
    }
    return 0;
  }
  if (found->index == 0) {
    keep_refused(found);
    return duplicate(0, found->key);
  }
  std::string_view other;
  if (!indexes_[found->index].codec->primary_of(found->key, view_of(found->value), &other)) {
    return failed(kErrDamagedRow, "an entry of a unique index of " + shared_->path + " is damaged");
  }
  return duplicate(found->index, other);
}

// Writes what was added of the row so far.
int ha_shale::write_part() {
  RowWrite::Refused found;
  int error = note(row_write_.apply_part(&found));
  return note_applied(error, &found);
}

// Writes the row, as a whole or not at all: also within a statement that goes on with the next
// (INSERT IGNORE).
int ha_shale::end_row(int error) {
  if (error == 0) {
    RowWrite::Refused found;
    error = note(row_write_.apply(&found));
    error = note_applied(error, &found);
  }
  // It may have been its own parent.
  if (error != 0 && references_ != nullptr) trx()->known_parents().forget();
  int other = note(row_write_.end(error));
  return other != 0 ? other : error;
}

// The entry of one index. Unique ones are looked up and locked first, so that of two who insert the
// same the second waits and then finds it.
int ha_shale::add_entry(const uchar *row, size_t place, const RowKeys &keys) {
  const Index &index = indexes_[place];
  if (index.many != nullptr) {
    if (!load_.words.empty()) return 0;
    // Whoever comes by an entry asks for the row's lock.
    for (const ManyEntry &entry : keys.many[place]) {
      row_write_.add(place, index.tree, SHALE_ACTION_PUT_UNLOCKED, entry.key, entry.value);
    }
    return 0;
  }
  if (is_spatial_ && index.lacks_geometry(row)) return geometry_is_missing(write_part());
  if (int error = check_entry(row, place, keys)) return error;
  bool inserts = index.unique && !keys.has_null[place];
  row_write_.add(place, index.tree, inserts ? insert_action() : SHALE_ACTION_PUT, keys.keys[place],
                 keys.values[place]);
  return 0;
}

// Of an index with many; of a row that is new or gone, one of the two has none.
void ha_shale::change_entries(size_t place, const ManyEntries &was, const ManyEntries &is) {
  const shale_tree *tree = indexes_[place].tree;
  compare_entries(
      was, is,
      // As of a row that is inserted. Locks of words would keep writers of other rows waiting, as
      // soon as they are many and become ranges.
      [&](const std::string &key) {
        row_write_.add(place, tree, SHALE_ACTION_DELETE_UNLOCKED, key);
      },
      [&](const ManyEntry &entry) {
        row_write_.add(place, tree, SHALE_ACTION_PUT_UNLOCKED, entry.key, entry.value);
      },
      [](const ManyEntry &) {});
}

void ha_shale::add_row(const uchar *row, const RowKeys &keys, shale_action action) {
  value_.clear();
  rows_->pack(row, &value_);
  row_write_.add(0, primary().tree, action, keys.primary, value_);
}

int ha_shale::insert_row(const uchar *row, const RowKeys &keys) {
  if (int error = begin_row()) return error;
  if (parents_ahead_.rows > 2 && references_ != nullptr) ask_for_parents();
  int error = check_parents(0, keys, row);
  if (error == 0) {
    add_row(row, keys, shared_->def->hidden_key ? SHALE_ACTION_PUT : insert_action());
  }
  for (size_t index = 1; error == 0 && index < indexes_.size(); index++) {
    error = check_parents(index, keys, row);
    if (error == 0) error = add_entry(row, index, keys);
  }
  if (error == 0 && is_building()) {
    add_building(nullptr, {}, row, keys.primary, &online_.changes);
  }
  error = end_row(error);
  return error != 0 || load_.words.empty() ? error : add_words(row, keys.primary);
}

// Whether a number of a row that a duplicate keeps out counts as given, as InnoDB has it: REPLACE
// writes the row after all, and INSERT ... SELECT may be logged as text.
static bool counts_duplicates(THD *thd) {
  switch (thd_sql_command(thd)) {
    case SQLCOM_REPLACE:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_INSERT_SELECT:
      return true;
    case SQLCOM_LOAD:
      return thd->lex->duplicates == DUP_REPLACE;
    default:
      return false;
  }
}

// LOAD DATA computes generated columns before it calls triggers, which may change what they are
// computed from.
bool ha_shale::is_computed_early(const uchar *buf) const {
  return table->triggers != nullptr && table->vfield != nullptr && buf == table->record[0] &&
         thd_sql_command(ha_thd()) == SQLCOM_LOAD;
}

// Rows may be anywhere: the server's own function knows places near its records.
static longlong number_at(Field *field, my_ptrdiff_t offset) {
  field->move_field_offset(offset);
  const longlong number = field->val_int();
  field->move_field_offset(-offset);
  return number;
}

int ha_shale::write_row(const uchar *buf) {
  if (is_sequence()) return write_sequence(buf, true);
  if (is_computed_early(buf)) {
    if (int error = compute_quietly()) return tell_server(ha_thd(), error);
  }
  if (is_spatial_ && load_.copy) {
    if (int error = check_geometries(buf)) return error;
  }
  if (table->next_number_field != nullptr && buf == table->record[0]) {
    if (int error = update_auto_increment()) return error;
  }
  return tell_server(ha_thd(), writes_versions() ? insert_version(buf) : store_row(buf));
}

int ha_shale::new_hidden_key(std::string *key) {
  uint64_t number = 0;
  if (int error = note(shared_->hidden_key(&number))) return error;
  key->clear();
  for (int shift = 56; shift >= 0; shift -= 8) key->push_back(static_cast<char>(number >> shift));
  return 0;
}

int ha_shale::store_row(const uchar *buf) {
  if (shared_->def->hidden_key) {
    if (int error = new_hidden_key(&is_.primary)) return error;
  }
  if (int error = compute_for_keys(buf)) return error;
  pack_keys(buf, &is_);
  int error = load_.copy ? load_row(buf, is_) : insert_row(buf, is_);
  if (error == 0 && load_.in_parts != Load::Parts::kNone) {
    error = end_part(is_.primary.size() + value_.size());
  }
  if (error == 0 || (error == HA_ERR_FOUND_DUPP_KEY && counts_duplicates(ha_thd()))) {
    use_number(buf);
  }
  // A scan's own row stays the one last read: the server may come back to that of a partition to
  // which it has moved another row meanwhile.
  if (error == 0 && shared_->def->hidden_key && inited == NONE) last_.primary = is_.primary;
  if (error == 0) count_change(1);
  return error;
}

int ha_shale::add_change(const uchar *old_row, const uchar *new_row, const RowKeys &was,
                         const RowKeys &is) {
  bool same_primary = was.primary == is.primary;
  const bool ends = references_ != nullptr && is_past(new_row);
  const bool begins = references_ != nullptr && !ends && is_past(old_row);
  forget_parents();
  if (!same_primary) {
    row_write_.add(0, primary().tree, SHALE_ACTION_DELETE, was.primary);
    if (int error = check_children(0, was, old_row, new_row)) return error;
    if (int error = check_parents(0, is, new_row)) return error;
  }
  add_row(new_row, is, same_primary ? SHALE_ACTION_PUT : insert_action());
  if (same_primary) {
    if (int error = check_children(0, was, old_row, new_row)) return error;
  }
  for (size_t place = 1; place < indexes_.size(); place++) {
    const Index &index = indexes_[place];
    if (index.many != nullptr) {
      change_entries(place, was.many[place], is.many[place]);
      continue;
    }
    const std::string &key = is.keys[place], &value = is.values[place];
    if (was.keys[place] == key) {
      if (is_spatial_ && index.lacks_geometry(new_row)) return geometry_is_missing(write_part());
      if (was.values[place] == value) {
        // Without a primary key an entry stays where a row becomes one of the past, or is one no
        // more.
        if (begins) {
          if (int error = check_parents(place, is, new_row)) return error;
        }
        if (ends) {
          if (int error = check_children(place, was, old_row, new_row)) return error;
        }
        continue;
      }
      if (int error = check_parents(place, is, new_row)) return error;
      row_write_.add(place, index.tree, SHALE_ACTION_PUT, key, value);
      if (int error = check_children(place, was, old_row, new_row)) return error;
      continue;
    }
    // Before the old entry, for which others may wait who have the place.
    if (int error = lock_place_of(place, is)) return error;
    row_write_.add(place, index.tree, SHALE_ACTION_DELETE, was.keys[place]);
    if (int error = check_children(place, was, old_row, new_row)) return error;
    if (int error = check_parents(place, is, new_row)) return error;
    if (int error = add_entry(new_row, place, is)) return error;
  }
  if (same_primary && row_write_.watches()) keep_entries(was, is);
  if (is_building()) {
    add_building(old_row, was.primary, new_row, is.primary, &online_.changes);
  }
  return 0;
}

// What an action of a foreign key has made of a row since it was read, in a function or a trigger
// of the statement, is not overwritten.
int ha_shale::check_unchanged(const std::string &primary_key, const uchar *row) {
  if (last_.actions == trx()->actions_on(shared_.get())) return 0;
  std::string_view value;
  if (int error = get_value(primary(), primary_key, HA_ERR_KEY_NOT_FOUND, &value)) return error;
  std::vector<uchar> is(table->s->reclength);
  memcpy(is.data(), row, is.size());
  const std::string kept(value);
  if (!rows_->unpack(primary_key, kept, nullptr, is.data())) return HA_ERR_CRASHED_ON_USAGE;
  return rows_->same(row, is.data()) ? 0 : HA_ERR_RECORD_CHANGED;
}

int ha_shale::update_row(const uchar *old_row, const uchar *new_row) {
  const int error = writes_versions() ? update_version(old_row, new_row)
                                      : change_row(old_row, new_row, nullptr);
  return error == HA_ERR_RECORD_IS_THE_SAME ? error : tell_server(ha_thd(), error);
}

int ha_shale::change_row(const uchar *old_row, const uchar *new_row, const uchar *past) {
  if (shared_->def->hidden_key) was_.primary = is_.primary = last_.primary;
  if (int error = pack_change(old_row, new_row)) return error;
  // Also where only the server cannot tell: it counts such a row as not changed, and logs nothing.
  if (was_.same(is_) && rows_->same(old_row, new_row)) return HA_ERR_RECORD_IS_THE_SAME;
  if (has_many_ && table->versioned(VERS_TIMESTAMP) && ends_at_action(old_row, new_row)) {
    return HA_ERR_FOREIGN_DUPLICATE_KEY;
  }
  int error = check_unchanged(was_.primary, old_row);
  if (error == 0) error = begin_row();
  if (error == 0) {
    if (past != nullptr) error = add_past(past);
    if (error == 0) error = add_change(old_row, new_row, was_, is_);
    error = end_row_of_parent(error, was_, old_row, new_row);
  }
  if (error == 0) use_number(new_row);
  if (error == 0) count_change(0);
  return error;
}

int ha_shale::delete_row(const uchar *buf) {
  if (writes_versions()) {
    bool ended = false;
    const int error = end_version(buf, &ended);
    if (error != 0 || ended) return tell_server(ha_thd(), error);
  }
  if (shared_->def->hidden_key) was_.primary = last_.primary;
  if (int error = compute_for_keys(buf)) return tell_server(ha_thd(), error);
  pack_keys(buf, &was_);
  int error = check_unchanged(was_.primary, buf);
  if (error == 0) error = begin_row();
  if (error != 0) return tell_server(ha_thd(), error);
  forget_parents();
  row_write_.add(0, primary().tree, SHALE_ACTION_DELETE, was_.primary);
  // Before its children, whose actions may read rows by this handler, and so move long values.
  if (is_building()) add_building(buf, was_.primary, nullptr, {}, &online_.changes);
  error = check_children(0, was_, buf, nullptr);
  for (size_t index = 1; error == 0 && index < indexes_.size(); index++) {
    if (indexes_[index].many != nullptr) {
      change_entries(index, was_.many[index], {});
      continue;
    }
    row_write_.add(index, indexes_[index].tree, SHALE_ACTION_DELETE, was_.keys[index]);
    error = check_children(index, was_, buf, nullptr);
  }
  error = end_row_of_parent(error, was_, buf, nullptr);
  if (error == 0) count_change(-1);
  return tell_server(ha_thd(), error);
}

// What is one above the greatest automatic number that is in the table, of rows that are committed.
int ha_shale::look_up_above(uint64_t *above) {
  const Index &index = of_number(table->s->next_number_index);
  shale_scan *begun = nullptr;
  int error = consume_error(
      shale_scan_new(index.tree, nullptr, nullptr, 0, nullptr, 0, true, &begun));
  if (error != 0) return error;
  ScanHandle scan(begun);
  const KEY &key = table->key_info[table->s->next_number_index];
  bool falls = (key.key_part[0].key_part_flag & HA_REVERSE_SORT) != 0;
  if ((error = consume_error(move_scan(begun, falls ? SHALE_FIRST : SHALE_LAST)))) {
    return error;
  }
  *above = 1;
  if (!at_row(begun)) return 0;
  size_t key_len = 0, value_len = 0;
  const char *bytes = static_cast<const char *>(shale_scan_key(begun, &key_len));
  const void *value = nullptr;
  if ((error = consume_error(shale_scan_value(begun, &value, &value_len)))) return error;
  uchar *row = table->record[1];
  std::string saved(reinterpret_cast<char *>(row), table->s->reclength);
  if (!index.codec->unpack({bytes, key_len}, {static_cast<const char *>(value), value_len}, row)) {
    return failed(kErrDamagedRow, "the last entry of the index of automatic numbers of " +
                                      shared_->path + " is damaged");
  }
  MY_BITMAP *old = dbug_tmp_use_all_columns(table, &table->read_set);
  Field *field = table->found_next_number_field;
  my_ptrdiff_t offset = row - table->record[0];
  // All entries may be NULL: then the record has no number, but what was in its place.
  bool is_null = field->is_real_null(offset);
  longlong found = is_null ? 0 : number_at(field, offset);
  bool is_signed = !(field->flags & UNSIGNED_FLAG);
  uint64_t greatest = is_signed && found < 0 ? 0 : static_cast<uint64_t>(found);
  *above = greatest == ULONGLONG_MAX ? greatest : greatest + 1;
  dbug_tmp_restore_column_map(&table->read_set, old);
  memcpy(row, saved.data(), saved.size());
  return 0;
}

// The next automatic number is one above the greatest that is or was in the table.
int ha_shale::look_up_number() {
  if (shared_->next_number.load() != 0 || table->found_next_number_field == nullptr) return 0;
  std::lock_guard<std::mutex> one_at_a_time(shared_->numbers);
  if (shared_->next_number.load() != 0) return 0;
  uint64_t kept = 0, above = 0;
  int error = note(engine().catalog.read_number('A', shared_->def->table_id, &kept));
  if (error == 0) error = look_up_above(&above);
  if (error != 0) return error;
  shared_->number_was_kept(kept, table->found_next_number_field->get_max_int_value());
  shared_->next_number.store(std::max(kept, above));
  return 0;
}

void ha_shale::get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted,
                                  ulonglong *first, ulonglong *reserved) {
  if (look_up_number() != 0) {
    *first = ULONGLONG_MAX;
    return;
  }
  std::atomic<uint64_t> &next = shared_->next_number;
  if (wanted == 0) wanted = 1;
  uint64_t now = next.load();
  for (;;) {
    uint64_t value = now;
    if (increment > 1) {
      uint64_t start = offset > increment ? 0 : offset;
      if (value <= start) {
        value = start == 0 ? 1 : start;
      } else {
        const uint64_t steps = (value - start - 1) / increment + 1;
        // None is left otherwise: the server finds that out of the number itself, as of InnoDB's.
        if (steps <= (ULONGLONG_MAX - start) / increment) value = start + steps * increment;
      }
    }
    uint64_t max = table->next_number_field->get_max_int_value();
    // One above the last that is given out, not a whole step: the next may be of another size.
    uint64_t end = value > max || (max - value) / increment < wanted
                       ? (max == ULONGLONG_MAX ? max : max + 1)
                       : value + (wanted - 1) * increment + 1;
    if (end < now) end = now;
    if (next.compare_exchange_weak(now, end)) {
      *first = value;
      *reserved = wanted;
      break;
    }
  }
  trx()->note_number(shared_);
}

// Others may get numbers between those of a statement that asks more than once, since the server
// does not know how many rows it has. Logged as text it would have other numbers on a replica.
bool ha_shale::autoinc_lock_mode_stmt_unsafe() const {
  const int command = thd_sql_command(ha_thd());
  return command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT ||
         command == SQLCOM_LOAD;
}

// A number that a statement gave itself is not given again.
void ha_shale::use_number(const uchar *row) {
  Field *field = table->found_next_number_field;
  if (field == nullptr || look_up_number() != 0) return;
  my_ptrdiff_t offset = row - table->record[0];
  if (field->is_real_null(offset)) return;
  MY_BITMAP *old = dbug_tmp_use_all_columns(table, &table->read_set);
  longlong found = number_at(field, offset);
  dbug_tmp_restore_column_map(&table->read_set, old);
  if (found <= 0 && !(field->flags & UNSIGNED_FLAG)) return;
  uint64_t used = static_cast<uint64_t>(found);
  if (used > field->get_max_int_value()) return;
  uint64_t wanted = used == ULONGLONG_MAX ? used : used + 1;
  uint64_t now = shared_->next_number.load();
  while (now < wanted && !shared_->next_number.compare_exchange_weak(now, wanted)) {
  }
  // Also where another transaction has raised it, which may never commit.
  if (!shared_->keeps_number(wanted)) trx()->note_number(shared_);
}

int ha_shale::reset_auto_increment(ulonglong value) {
  std::unique_lock<std::mutex> one_at_a_time(shared_->numbers);
  shared_->next_number.store(value == 0 ? 1 : value);
  one_at_a_time.unlock();
  return note(shared_->keep_number_exactly());
}

void ha_shale::update_create_info(HA_CREATE_INFO *create) {
  if ((create->used_fields & HA_CREATE_USED_AUTO) == 0) {
    info(HA_STATUS_AUTO);
    create->auto_increment_value = stats.auto_increment_value;
  }
}
