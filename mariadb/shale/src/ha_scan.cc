// Reading rows: by key, by range, whole tables, by position.

#include "ha_shale.h"

#include "engine.h"
#include "errors.h"
#include "search.h"
#include "trx.h"

using namespace shale_sql;

namespace {

// For each row of a scan: keys are mostly as long as the last one.
inline void copy_key(std::string_view key, std::string *to) {
  if (to->size() == key.size() && !key.empty()) {
    memcpy(&(*to)[0], key.data(), key.size());
  } else {
    to->assign(key);
  }
}

}  // namespace

int ha_shale::begin_scan(const Index &index, std::string_view lower, bool has_upper,
                         std::string_view upper) {
  scanned_ = &index;
  prefix_bound_ = false;
  ahead_.clear();
  return open_cursor(index, lower, has_upper, upper);
}

int ha_shale::open_cursor(const Index &index, std::string_view lower, bool has_upper,
                          std::string_view upper) {
  shale_txn *txn = nullptr;
  Trx *trx = this->trx();
  if (int error = trx->get(&txn)) return tell_server(ha_thd(), error);
  if (int error = begin_plain_read(trx)) return error;
  scan_trx_ = trx;
  scan_of_ = trx->ended();
  int error =
      cursor_.begin(txn, index.tree, lock_mode(), lower, has_upper, upper, true, skips_locked_);
  return tell_server(ha_thd(), error);
}

// Fills `buf` from the row of the primary key's entry; blobs point into a copy that lives until the
// next row is read.
int ha_shale::fill_from_primary(uchar *buf, std::string_view key, std::string_view value) {
  if (current_primary_.data() != key.data()) copy_key(key, &current_primary_);
  if (table->s->blob_fields != 0 && value.data() != row_.data()) {
    row_.assign(value);
    value = row_;
  }
  const MY_BITMAP *wanted = read_whole_rows_ ? nullptr : table->read_set;
  if (rows_->unpack(current_primary_, value, wanted, buf)) return 0;
  return failed(kErrDamagedRow, "a row of table " + shared_->path +
                                    " is damaged; CHECK TABLE says which");
}

// Reads the row whose primary key is current_primary_.
int ha_shale::read_by_primary(uchar *buf, int missing) {
  return read_row(primary(), current_primary_, buf, missing);
}

int ha_shale::read_row(const Index &index, std::string_view key, uchar *buf, int missing) {
  shale_txn *txn = nullptr;
  Trx *trx = this->trx();
  if (int error = trx->get(&txn)) return error;
  if (int error = begin_plain_read(trx)) return error;
  shale_bytes *found = nullptr;
  if (skips_locked_) {
    if (int error = trx->wait_for_locks(0)) return error;
  }
  int error =
      number_of(shale_txn_get(txn, index.tree, lock_mode(), key.data(), key.size(), &found));
  if (skips_locked_) {
    // Another's row is as if it were not there.
    if (error == HA_ERR_LOCK_WAIT_TIMEOUT) error = missing;
    if (int other = trx->wait_for_locks(lock_wait_millis(ha_thd()))) return other;
  }
  if (error != 0) return error;
  if (found == nullptr) {
    // At READ COMMITTED the place of a row that is not there is free to all, as InnoDB has it.
    if (lock_mode() != SHALE_LOCK_NONE) trx->unlock(index.tree, std::string(key));
    return missing;
  }
  BytesHandle bytes(found);
  std::string_view value = view_of(bytes);
  note_locked(index, key);
  if (is_primary(index)) return fill_from_primary(buf, key, value);
  bool skip = false;
  std::string_view primary_key;
  if (int error = look_at_entry(index, buf, key, value, &primary_key, &skip)) return error;
  if (skip) {
    // The row of an entry that does not match is not the one that was read before.
    locked_row_.index = nullptr;
    unlock_row();
    return missing;
  }
  current_primary_.assign(primary_key);
  if (keyread_only_) return 0;
  return read_by_primary(buf, skips_locked_ ? missing : HA_ERR_CRASHED_ON_USAGE);
}

// Fills `buf` from where the cursor is; `skip` if that row is not to be shown.
int ha_shale::fill(uchar *buf, bool *skip) {
  const Index &index = *scanned_;
  std::string_view value = cursor_.value();
  *skip = false;
  if (is_primary(index)) {
    note_locked(index, cursor_.key());
    return fill_from_primary(buf, cursor_.key(), value);
  }
  std::string_view primary_key;
  note_locked(index, cursor_.key());
  if (int error = look_at_entry(index, buf, cursor_.key(), value, &primary_key, skip)) return error;
  if (*skip) return 0;
  current_primary_.assign(primary_key);
  if (keyread_only_) return 0;
  int error = read_by_primary(buf, HA_ERR_KEY_NOT_FOUND);
  return error == HA_ERR_KEY_NOT_FOUND ? row_is_missing(index, skip) : error;
}

// An entry of a secondary index without its row: `buf` gets its columns if they are all that is
// wanted, or if a condition asks for them; `skip` if it does not hold.
int ha_shale::look_at_entry(const Index &index, uchar *buf, std::string_view key,
                            std::string_view value, std::string_view *primary_key, bool *skip) {
  bool good = index.codec->primary_of(key, value, primary_key);
  bool conditional = pushed_idx_cond != nullptr && pushed_idx_cond_keyno == index.number;
  bool by_join = ranges_.together && mrr_funcs.skip_index_tuple != nullptr;
  if (good && (keyread_only_ || conditional || by_join || checks_period_)) {
    good = index.codec->unpack(key, value, buf);
  }
  if (!good) {
    return failed(kErrDamagedRow, "an entry of index " +
                                      std::string(table->key_info[index.number].name.str) + " of " +
                                      shared_->path + " is damaged");
  }
  *skip = false;
  if (may_be_outdated_) {
    if (int error = is_outdated(index, key, *primary_key, skip)) return error;
    if (*skip) return 0;
  }
  if (!conditional) return 0;
  switch (handler_index_cond_check(this)) {
    case CHECK_POS:
      return 0;
    case CHECK_NEG:
      *skip = true;
      return 0;
    case CHECK_OUT_OF_RANGE:
      return HA_ERR_END_OF_FILE;
    case CHECK_ABORTED_BY_USER:
      return HA_ERR_ABORTED_BY_USER;
    default:
      return failed(kErrEngine, "the condition on an index could not be evaluated");
  }
}

int ha_shale::row_is_missing(const Index &index, bool *skip) {
  if (!trx()->wrote() && !skips_locked_) {
    return failed(HA_ERR_CRASHED_ON_USAGE,
                  "an entry of index " + std::string(table->key_info[index.number].name.str) +
                      " of " + shared_->path + " has no row; CHECK TABLE says which");
  }
  // The transaction has deleted the row since the scan began, or another has locked it.
  *skip = true;
  return 0;
}

// HANDLER holds a scan from one transaction to the next: it goes on after the row that it was at.
// One that locks begins there, so as not to lock what it has passed.
int ha_shale::go_on(shale_txn *txn, bool backward, bool *found) {
  std::string at(cursor_.key());
  *found = false;
  if (at.empty()) return 0;
  bool locks = lock_mode() != SHALE_LOCK_NONE, bound = prefix_bound_;
  std::string_view lower = bound ? lower_ : std::string_view(), upper = bound ? upper_ : lower;
  bool has_upper = bound && !upper_.empty();
  if (locks && backward) {
    upper = at;
    has_upper = true;
  } else if (locks) {
    lower = at;
  }
  if (int error = begin_scan(*scanned_, lower, has_upper, upper)) return error;
  prefix_bound_ = bound;
  return cursor_.step_from(txn, at, backward, found);
}

int ha_shale::step(uchar *buf, bool backward) {
  if (ahead_.most != 0 && !backward) return step_ahead(buf);
  if (scan_trx_ == nullptr) return HA_ERR_END_OF_FILE;
  shale_txn *txn = nullptr;
  if (int error = scan_trx_->get(&txn)) return error;
  for (;;) {
    bool found = false, skip = false;
    int error = scan_of_ == scan_trx_->ended() ? cursor_.step(txn, backward, &found)
                                               : go_on(txn, backward, &found);
    forget_locked();
    if (error != 0) return error;
    if (!found) return HA_ERR_END_OF_FILE;
    if (int error = fill(buf, &skip)) return error;
    if (!skip) return 0;
    unlock_row();
    if (thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
  }
}

int ha_shale::finish_read(int error, uchar *) {
  table->status = error == 0 ? 0 : STATUS_NOT_FOUND;
  return error == 0 ? 0 : tell_server(ha_thd(), error);
}

int ha_shale::rnd_init(bool scan) {
  whole_scan_ = scan;
  end_scan();
  if (!scan) return 0;
  return begin_scan(primary(), {}, false, {});
}

int ha_shale::rnd_end() {
  end_scan();
  scanned_ = nullptr;
  return 0;
}

int ha_shale::rnd_next(uchar *buf) { return finish_read(step(buf, false), buf); }

// A position is the primary key's bytes, their number before them, zeros after.
void ha_shale::position(const uchar *record) {
  key_.clear();
  if (shared_->def->hidden_key) {
    key_ = current_primary_;
  } else {
    primary().codec->pack_columns(record, &key_);
  }
  memset(ref, 0, ref_length);
  int2store(ref, key_.size());
  memcpy(ref + 2, key_.data(), std::min<size_t>(key_.size(), ref_length - 2));
}

int ha_shale::rnd_pos(uchar *buf, uchar *pos) {
  current_primary_.assign(reinterpret_cast<const char *>(pos) + 2, uint2korr(pos));
  bool keyread = keyread_only_;
  keyread_only_ = false;
  forget_locked();
  int error = read_by_primary(buf, HA_ERR_KEY_NOT_FOUND);
  keyread_only_ = keyread;
  return finish_read(error, buf);
}

int ha_shale::index_init(uint index, bool) {
  active_index = index;
  end_scan();
  scanned_ = nullptr;
  return 0;
}

int ha_shale::index_end() {
  end_scan();
  scanned_ = nullptr;
  active_index = MAX_KEY;
  return 0;
}

int ha_shale::index_read_map(uchar *buf, const uchar *key, key_part_map parts,
                             enum ha_rkey_function how) {
  const Index &index = of_number(active_index);
  const KEY &key_info = table->key_info[active_index];
  bool in_range = has_range_end_;
  has_range_end_ = false;
  if (key == nullptr) return index_first(buf);
  key_.clear();
  index.codec->pack_tuple(key, parts, &key_);
  key_part_map whole = (key_part_map(1) << key_info.user_defined_key_parts) - 1;
  if (how == HA_READ_KEY_EXACT && index.unique && (parts & whole) == whole &&
      !has_null(key_info, key, parts)) {
    end_scan();
    scanned_ = nullptr;
    if (parts != whole) {
      key_.clear();
      index.codec->pack_tuple(key, whole, &key_);
    }
    std::string searched = key_;
    forget_locked();
    int error = read_row(index, searched, buf, HA_ERR_KEY_NOT_FOUND);
    // Where an index_next would go on.
    lower_ = searched;
    scanned_ = error == 0 ? &index : nullptr;
    return finish_read(error, buf);
  }
  Search search = search_of(key_, how);
  if (int error = begin_check(index, buf, key, how, &search)) return finish_read(error, buf);
  if (!search.possible) return finish_read(HA_ERR_KEY_NOT_FOUND, buf);
  if (in_range && !search.exact && !search.backward) {
    search.upper = range_end_;
    search.has_upper = true;
    if (search.lower >= search.upper) return finish_read(HA_ERR_KEY_NOT_FOUND, buf);
  }
  if (int error = begin_scan(index, search.lower, search.has_upper, search.upper)) {
    return finish_read(error, buf);
  }
  prefix_bound_ = search.exact;
  if ((search.exact || in_server_range_) && !search.backward) read_ahead();
  lower_ = std::move(search.lower);
  upper_ = std::move(search.upper);
  int error = step(buf, search.backward);
  return finish_read(error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error, buf);
}

// After an exact search the scan ends with the equal rows. The index does not: who asks for more
// gets a scan of what comes after, or before.
int ha_shale::index_next(uchar *buf) {
  if (!cursor_.begun()) {
    if (scanned_ == nullptr) return finish_read(HA_ERR_END_OF_FILE, buf);
    std::string from = lower_;
    if (!next_after_prefix(&from)) return finish_read(HA_ERR_END_OF_FILE, buf);
    if (int error = begin_scan(*scanned_, from, false, {})) return finish_read(error, buf);
  }
  int error = step(buf, false);
  if (error == HA_ERR_END_OF_FILE && prefix_bound_ && !upper_.empty()) {
    std::string from = upper_;
    if ((error = begin_scan(*scanned_, from, false, {})) == 0) error = step(buf, false);
  }
  return finish_read(error, buf);
}

int ha_shale::index_prev(uchar *buf) {
  if (ahead_.most != 0) {
    std::string to = ahead_.key;
    if (int error = begin_scan(*scanned_, {}, true, to)) return finish_read(error, buf);
  }
  if (!cursor_.begun()) {
    if (scanned_ == nullptr) return finish_read(HA_ERR_END_OF_FILE, buf);
    std::string to = lower_;
    if (int error = begin_scan(*scanned_, {}, true, to)) return finish_read(error, buf);
  }
  int error = step(buf, true);
  if (error == HA_ERR_END_OF_FILE && prefix_bound_ && !lower_.empty()) {
    std::string to = lower_;
    if ((error = begin_scan(*scanned_, {}, true, to)) == 0) error = step(buf, true);
  }
  return finish_read(error, buf);
}

// Of an exact search: the scan is of the equal rows only.
int ha_shale::index_next_same(uchar *buf, const uchar *key, uint length) {
  if (!prefix_bound_ && cursor_.begun()) return handler::index_next_same(buf, key, length);
  return finish_read(cursor_.begun() ? step(buf, false) : HA_ERR_END_OF_FILE, buf);
}

int ha_shale::index_first(uchar *buf) {
  bool bounded = has_range_end_;
  has_range_end_ = false;
  int error = begin_scan(of_number(active_index), {}, bounded, bounded ? range_end_ : "");
  if (error == 0 && in_server_range_) read_ahead();
  return finish_read(error != 0 ? error : step(buf, false), buf);
}

int ha_shale::index_last(uchar *buf) {
  int error = begin_scan(of_number(active_index), {}, false, {});
  return finish_read(error != 0 ? error : step(buf, true), buf);
}

// The end of the range bounds the scan, so that it neither reads nor locks beyond.
int ha_shale::read_range_first(const key_range *start, const key_range *end, bool eq_range,
                               bool sorted) {
  has_range_end_ = false;
  if (end != nullptr && !eq_range) {
    range_end_.clear();
    of_number(active_index).codec->pack_tuple(end->key, end->keypart_map, &range_end_);
    has_range_end_ = end->flag == HA_READ_BEFORE_KEY || next_after_prefix(&range_end_);
  }
  in_server_range_ = true;
  int error = handler::read_range_first(start, end, eq_range, sorted);
  has_range_end_ = in_server_range_ = false;
  return error;
}

Item *ha_shale::idx_cond_push(uint index, Item *condition) {
  // The condition is looked at before the row is read: what it needs has to be in the index.
  if (index == table->s->primary_key) return condition;
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = index;
  in_range_check_pushed_down = true;
  return nullptr;
}

void ha_shale::note_locked(const Index &index, std::string_view key) {
  if (lock_mode() == SHALE_LOCK_NONE || !trx()->read_committed()) return;
  Locked &locked = is_primary(index) ? locked_row_ : locked_entry_;
  locked.index = &index;
  locked.key.assign(key);
}

// At READ COMMITTED the row last read is given up if it does not match. The engine keeps the lock if
// anything else relies on it: an earlier read, also of an earlier statement, or a write.
void ha_shale::unlock_row() {
  for (Locked *locked : {&locked_row_, &locked_entry_}) {
    if (locked->index != nullptr) trx()->unlock(locked->index->tree, locked->key);
  }
  forget_locked();
}
