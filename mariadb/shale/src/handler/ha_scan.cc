// Reading rows: by key, by range, whole tables, by position.

#include "handler/ha_shale.h"

#include <rowid_filter.h>

#include "engine/engine.h"
#include "engine/errors.h"
#include "handler/search.h"
#include "txn/trx.h"

#include <algorithm>

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

// Of [lower, upper); an empty upper bound is none.
int ha_shale::begin_scan(const Index &index, std::string_view lower, std::string_view upper) {
  scan_.index = &index;
  scan_.lower = lower;
  scan_.upper = upper;
  scan_.gap = Gap::kNone;
  scan_.is_of_prefix = scan_.is_of_before = false;
  scan_.ends_in_range = scan_.begins_in_range = false;
  scan_.cells.reset();
  ahead_.clear();
  return open_cursor(index, scan_.lower, !scan_.upper.empty(), scan_.upper);
}

int ha_shale::open_cursor(const Index &index, std::string_view lower, bool has_upper,
                          std::string_view upper) {
  shale_txn *txn = nullptr;
  Trx *trx = this->trx();
  if (int error = note(trx->get(&txn))) return tell_server(ha_thd(), error);
  if (int error = begin_plain_read(trx)) return error;
  scan_.trx = trx;
  scan_.of = trx->ended();
  scan_.actions = trx->actions_on(shared_.get());
  int error = note(scan_.cursor.begin(txn, index.tree, lock_mode(), lower, has_upper, upper, true,
                                 asked_.skips_locked));
  if (error == 0 && is_primary(index) && lock_mode() == SHALE_LOCK_NONE) {
    scan_.cursor.leave_values(!rows_->needs_value(wanted_columns()));
  }
  // As InnoDB: not in other indexes.
  if (error == 0 && semi_ != Semi::kNo && is_primary(index)) scan_.cursor.peek_locked(true);
  return tell_server(ha_thd(), error);
}

// Whether columns that point into the row are among those wanted.
bool ha_shale::wants_blobs(const MY_BITMAP *wanted) const {
  const uint *columns = table->s->blob_field;
  return std::any_of(columns, columns + table->s->blob_fields, [wanted](uint column) {
    return wanted == nullptr || bitmap_is_set(wanted, column);
  });
}

// Those that a row of the primary key is read for; nullptr: all.
const MY_BITMAP *ha_shale::wanted_columns() const {
  return asked_.whole_rows || asked_.base_columns ? nullptr : table->read_set;
}

// Fills `buf` from the row of the primary key's entry; blobs point into a copy that lives until the
// next row is read.
int ha_shale::fill_from_primary(uchar *buf, std::string_view key, std::string_view value) {
  if (last_.primary.data() != key.data()) copy_key(key, &last_.primary);
  const MY_BITMAP *wanted = wanted_columns();
  // One that was left unread is of no use to them: such columns are virtual.
  if (value.data() != nullptr && wants_blobs(wanted) && value.data() != last_.value.data()) {
    last_.value.assign(value);
    value = last_.value;
  }
  if (rows_->unpack(last_.primary, value, wanted, buf)) return 0;
  return damaged_row();
}

int ha_shale::damaged_row() {
  return failed(kErrDamagedRow, "a row of table " + shared_->path +
                                    " is damaged; CHECK TABLE says which");
}

int ha_shale::damaged_entry(const Index &index) {
  return failed(kErrDamagedRow, "an entry of index " +
                                    std::string(table->key_info[index.number].name.str) + " of " +
                                    shared_->path + " is damaged");
}

// The value of a key, with the lock that the statement takes: the engine's, until the next value is
// read. `missing`: the error where there is none.
int ha_shale::get_value(const Index &index, std::string_view key, int missing,
                        std::string_view *value) {
  shale_txn *txn = nullptr;
  Trx *trx = this->trx();
  if (int error = note(trx->get(&txn))) return error;
  if (int error = begin_plain_read(trx)) return error;
  if (asked_.skips_locked) {
    if (int error = note(trx->wait_for_locks(0))) return error;
  }
  const void *found = nullptr;
  size_t length = 0;
  int error = consume_error(
      shale_txn_read(txn, index.tree, lock_mode(), key.data(), key.size(), &found, &length));
  if (asked_.skips_locked) {
    // Another's row is as if it were not there.
    if (error == HA_ERR_LOCK_WAIT_TIMEOUT) error = missing;
    if (int other = note(trx->wait_for_locks(trx->lock_wait()))) return other;
  }
  if (error != 0) return error;
  if (found == nullptr) {
    // At READ COMMITTED the place of a row that is not there is free to all, as InnoDB has it.
    if (lock_mode() != SHALE_LOCK_NONE) trx->unlock(index.tree, std::string(key));
    return missing;
  }
  *value = {static_cast<const char *>(found), length};
  last_.actions = trx->actions_on(shared_.get());
  note_locked(index, key);
  return 0;
}

int ha_shale::read_by_primary(std::string_view key, uchar *buf, int missing) {
  std::string_view value;
  int error = get_value(primary(), key, missing, &value);
  return error != 0 ? error : fill_from_primary(buf, key, value);
}

// Reads the row of the entry of a unique index.
int ha_shale::read_by_entry(const Index &index, std::string_view key, uchar *buf, int missing) {
  std::string_view value, primary_key;
  bool skip = false;
  if (int error = get_value(index, key, missing, &value)) return error;
  // A condition on the entry may read other rows.
  last_.entry.assign(value);
  if (int error = decode_entry(index, buf, key, last_.entry, &primary_key, &skip)) return error;
  if (skip) {
    // The row of an entry that does not match is not the one that was read before.
    last_.locked_row.index = nullptr;
    unlock_row();
    return missing;
  }
  last_.primary.assign(primary_key);
  int error = read_entry_row(index, buf, asked_.skips_locked ? missing : HA_ERR_CRASHED_ON_USAGE);
  if (error == missing && asked_.skips_locked) {
    // Its row is locked by another: the entry is of no use either.
    last_.locked_row.index = nullptr;
    unlock_row();
  }
  return error == HA_ERR_CRASHED_ON_USAGE ? entry_without_row(index) : error;
}

// Reads the row of an entry, whose primary key is last_.primary, if the entry is not enough.
int ha_shale::read_entry_row(const Index &index, uchar *buf, int missing) {
  if (is_enough(index)) return 0;
  asked_.base_columns = computes(index, buf);
  int error = read_by_primary(last_.primary, buf, missing);
  asked_.base_columns = false;
  return error != 0 ? error : compute(index, buf);
}

// Fills `buf` from where the cursor is; `skip` if that row is not to be shown.
int ha_shale::fill_row(uchar *buf, bool *skip) {
  const Index &index = *scan_.index;
  *skip = false;
  if (is_primary(index)) {
    // What is wanted may be more than when the scan began.
    if (!scan_.cursor.has_value() && rows_->needs_value(wanted_columns())) {
      if (int error = note(scan_.cursor.read_value())) return error;
    }
    last_.actions = scan_.actions;
    if (scan_.cursor.is_only_shown()) {
      semi_ = Semi::kDid;
    } else {
      note_locked(index, scan_.cursor.key());
    }
    return fill_from_primary(buf, scan_.cursor.key(), scan_.cursor.value());
  }
  const std::string_view value = scan_.cursor.value();
  std::string_view primary_key;
  note_locked(index, scan_.cursor.key());
  if (int error = decode_entry(index, buf, scan_.cursor.key(), value, &primary_key, skip)) {
    return error;
  }
  if (*skip) return 0;
  last_.primary.assign(primary_key);
  int error = read_entry_row(index, buf, HA_ERR_KEY_NOT_FOUND);
  return error == HA_ERR_KEY_NOT_FOUND ? row_is_missing(index, skip) : error;
}

// Whether an entry of a secondary index is all that is wanted of a row. The server asks for an
// index alone by the columns of the query; then it may also want columns of which the index has the
// beginning only, to compare rows of partitions or to make a position of the primary key. Who locks
// a row for writing locks it where all others do, whichever index they come by.
bool ha_shale::is_enough(const Index &index) const {
  if (!asked_.keys_only || lock_mode() == SHALE_LOCK_EXCLUSIVE) return false;
  const my_bitmap_map *wanted = table->read_set->bitmap;
  for (size_t word = 0; word < index.beginnings.size(); word++) {
    if ((wanted[word] & index.beginnings[word]) != 0) return false;
  }
  return true;
}

bool ha_shale::has_beginnings(const Index &index) const {
  return std::any_of(index.beginnings.begin(), index.beginnings.end(),
                     [](uint64_t word) { return word != 0; });
}

// An entry of a secondary index without its row: `buf` gets its columns if they are all that is
// wanted, or if a condition asks for them; `skip` if it does not hold.
int ha_shale::decode_entry(const Index &index, uchar *buf, std::string_view key,
                            std::string_view value, std::string_view *primary_key, bool *skip) {
  bool conditional = pushed_idx_cond != nullptr && pushed_idx_cond_keyno == index.number;
  bool by_join = ranges_.together && mrr_funcs.skip_index_tuple != nullptr;
  const bool fills = conditional || by_join || asked_.checks_period || is_enough(index);
  const bool good = fills ? index.codec->unpack(key, value, buf, primary_key)
                          : index.codec->primary_of(key, value, primary_key);
  if (!good) return damaged_entry(index);
  *skip = false;
  if (scan_.may_be_outdated) {
    if (int error = is_outdated(index, key, *primary_key, skip)) return error;
    if (*skip) return 0;
  }
  if (!conditional) return filter_out(*primary_key, skip);
  // Before the condition the server compares the record with the end of the range. What an entry
  // has the beginning of only is not in the record, but an earlier row's value: the scan's own
  // bound, and the server once it has the row, find the end.
  key_range *end = end_range;
  if (has_beginnings(index)) end_range = nullptr;
  check_result_t holds = handler_index_cond_check(this);
  end_range = end;
  switch (holds) {
    case CHECK_POS:
      return filter_out(*primary_key, skip);
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

// Whether the filter of row references that the server has made of another index lacks the row.
int ha_shale::filter_out(std::string_view primary_key, bool *skip) {
  if (pushed_rowid_filter == nullptr || !rowid_filter_is_active) return 0;
  set_ref(primary_key, ref);
  *skip = !pushed_rowid_filter->check(reinterpret_cast<char *>(ref));
  return 0;
}

bool ha_shale::rowid_filter_push(Rowid_filter *filter) {
  pushed_rowid_filter = filter;
  return false;
}

int ha_shale::entry_without_row(const Index &index) {
  return failed(HA_ERR_CRASHED_ON_USAGE,
                "an entry of index " + std::string(table->key_info[index.number].name.str) +
                    " of " + shared_->path + " has no row; CHECK TABLE says which");
}

int ha_shale::row_is_missing(const Index &index, bool *skip) {
  if (!trx()->wrote() && !asked_.skips_locked) return entry_without_row(index);
  // The transaction has deleted the row since the scan began, or another has locked it.
  *skip = true;
  return 0;
}

// HANDLER holds a scan from one statement to the next: it goes on after the row that it was at. One
// that locks begins there, so as not to lock what it has passed.
int ha_shale::resume_scan(shale_txn *txn, bool backward, bool *found) {
  std::string at(scan_.cursor.key());
  *found = false;
  // The server begins the scans of all partitions, and comes to the next one in a later statement.
  const bool is_fresh = scan_.cursor.is_fresh();
  if (at.empty() && !is_fresh) return 0;
  bool locks = lock_mode() != SHALE_LOCK_NONE;
  const bool bound = scan_.is_of_prefix;
  const bool ends = scan_.ends_in_range, begins = scan_.begins_in_range;
  std::string lower = locks && !backward && !is_fresh ? at : scan_.lower;
  std::string upper = locks && backward && !is_fresh ? at : scan_.upper;
  if (int error = begin_scan(*scan_.index, lower, upper)) return error;
  scan_.is_of_prefix = bound;
  scan_.ends_in_range = ends;
  scan_.begins_in_range = begins;
  return note(is_fresh ? scan_.cursor.step(txn, backward, found)
                       : scan_.cursor.step_from(txn, at, backward, found));
}

// A scan shows what was there when it began. It begins anew after its transaction has ended, in
// another statement, and after an action of a foreign key has changed rows of the table.
bool ha_shale::is_scan_current() const {
  return !scan_.is_of_before && scan_.of == scan_.trx->ended() &&
         scan_.actions == scan_.trx->actions_on(shared_.get());
}

int ha_shale::step(uchar *buf, bool backward) {
  if (ahead_.most != 0 && !backward) return step_ahead(buf);
  if (scan_.trx == nullptr) return HA_ERR_END_OF_FILE;
  shale_txn *txn = nullptr;
  if (int error = note(scan_.trx->get(&txn))) return error;
  for (;;) {
    bool found = false, skip = false;
    int error = 0;
    if (semi_ == Semi::kDid) {
      // The row that was only shown matches.
      semi_ = Semi::kTry;
      error = note(scan_.cursor.lock_row(txn, &found));
      if (error == 0 && !found) continue;
    } else if (scan_.cells != nullptr) {
      error = next_in_cells(txn, &found);
    } else {
      error = is_scan_current() ? note(scan_.cursor.step(txn, backward, &found))
                                : resume_scan(txn, backward, &found);
    }
    forget_locked();
    if (error != 0) return error;
    if (!found) return HA_ERR_END_OF_FILE;
    if (int error = fill_row(buf, &skip)) return error;
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
  end_scan();
  scan_.has_shown_sequence = false;
  // For performance_schema: under which index it counts changes of the rows, as with InnoDB.
  active_index = table_share->primary_key;
  if (is_sequence()) return 0;
  if (!scan) try_semi_consistent_read(false);
  if (!scan) return 0;
  return begin_scan(primary(), {}, {});
}

int ha_shale::rnd_end() {
  end_scan();
  scan_.index = nullptr;
  active_index = MAX_KEY;
  return 0;
}

int ha_shale::rnd_next(uchar *buf) {
  if (is_sequence()) {
    if (scan_.has_shown_sequence) return HA_ERR_END_OF_FILE;
    scan_.has_shown_sequence = true;
    return read_sequence(buf);
  }
  return finish_read(step(buf, false), buf);
}

int ha_shale::index_init(uint index, bool) {
  active_index = index;
  end_scan();
  scan_.index = nullptr;
  // As a subquery of a row's values is: others are not run again, as the server has it, and
  // HANDLER's next statement may never come. Told now: its statement is gone when the index ends.
  const TABLE_LIST *place = table->open_by_handler ? nullptr : table->pos_in_table_list;
  scan_.is_run_again = place != nullptr && place->select_lex != nullptr &&
                       place->select_lex->uncacheable != 0;
  return 0;
}

int ha_shale::index_end() {
  if (scan_.is_of_prefix && scan_.is_run_again) scan_.cursor.end_for_now();
  end_scan();
  scan_.index = nullptr;
  active_index = MAX_KEY;
  return 0;
}

int ha_shale::index_read_map(uchar *buf, const uchar *key, key_part_map parts,
                             enum ha_rkey_function how) {
  const Index &index = of_number(active_index);
  const KEY &key_info = table->key_info[active_index];
  bool in_range = asked_.has_range_end;
  const bool has_start = asked_.has_range_start;
  asked_.has_range_end = asked_.has_range_start = false;
  if (key == nullptr) return index_first(buf);
  if (index.is_spatial()) return index_read_cells(index, buf, key, how);
  scan_.key.clear();
  index.codec->pack_tuple(key, parts, &scan_.key);
  key_part_map whole = (key_part_map(1) << key_info.user_defined_key_parts) - 1;
  if (how == HA_READ_KEY_EXACT && index.unique && (parts & whole) == whole &&
      !has_null(key_info, key, parts)) {
    end_scan();
    scan_.index = nullptr;
    if (parts != whole) {
      scan_.key.clear();
      index.codec->pack_tuple(key, whole, &scan_.key);
    }
    forget_locked();
    scan_.lower = scan_.upper = scan_.key;
    if (!next_after_prefix(&scan_.upper)) scan_.upper.clear();
    int error = is_primary(index) ? read_by_primary(scan_.lower, buf, HA_ERR_KEY_NOT_FOUND)
                                  : read_by_entry(index, scan_.lower, buf, HA_ERR_KEY_NOT_FOUND);
    // Where an index_next would go on, or an index_prev.
    scan_.index = &index;
    scan_.gap = error == 0 ? Gap::kNone : Gap::kLower;
    return finish_read(error, buf);
  }
  Search &search = scan_.search;
  search_of(scan_.key, how, &search);
  if (int error = begin_check(index, key, how, &search)) return finish_read(error, buf);
  if (!search.possible) {
    // The place is the end of the index.
    end_scan();
    scan_.index = &index;
    scan_.upper.clear();
    scan_.gap = Gap::kUpper;
    return finish_read(HA_ERR_KEY_NOT_FOUND, buf);
  }
  const bool ends_in_range = in_range && !search.exact && !search.backward;
  bool begins_in_range = has_start && !search.exact && search.backward;
  if (ends_in_range) {
    search.upper = asked_.range_end;
    search.has_upper = true;
  }
  if (begins_in_range) search.lower = asked_.range_start;
  if ((ends_in_range || begins_in_range) && search.has_upper && search.lower >= search.upper) {
    return finish_read(HA_ERR_KEY_NOT_FOUND, buf);
  }
  // Backward through equal rows, nobody goes on to the row before them but HANDLER.
  if (search.exact && search.backward) {
    begins_in_range = thd_sql_command(ha_thd()) != SQLCOM_HA_READ;
  }
  if (!search.has_upper) search.upper.clear();
  if (int error = begin_scan(index, search.lower, search.upper)) {
    return finish_read(error, buf);
  }
  scan_.is_of_prefix = search.exact;
  scan_.ends_in_range = ends_in_range;
  scan_.begins_in_range = begins_in_range;
  if ((search.exact || asked_.in_range) && !search.backward) read_ahead();
  int error = first_step(buf, search.backward);
  return finish_read(error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error, buf);
}

int ha_shale::first_step(uchar *buf, bool backward) {
  int error = step(buf, backward);
  if (error == HA_ERR_END_OF_FILE) scan_.gap = backward ? Gap::kLower : Gap::kUpper;
  return error;
}

// The next row of the index, or the one before. Where a scan ends the index does not: after an
// exact search come the rows beyond the equal ones, after a search in vain those around the place
// where the row would be, and after the last row, backward, the last.
int ha_shale::move(uchar *buf, bool backward) {
  if (scan_.index == nullptr) return HA_ERR_END_OF_FILE;
  if (scan_.cells != nullptr) return backward ? HA_ERR_WRONG_COMMAND : step(buf, false);
  const Gap side = backward ? Gap::kLower : Gap::kUpper;
  if (scan_.gap == Gap::kNone && ahead_.most != 0 && backward) {
    std::string to = ahead_.key;
    if (int error = begin_scan(*scan_.index, {}, to)) return error;
  }
  if (scan_.gap == Gap::kNone) {
    int error = scan_.cursor.begun() ? step(buf, backward) : HA_ERR_END_OF_FILE;
    // Rows of other keys overlap none of this one's periods, and are not to be locked.
    const bool ends = scan_.ends_in_range || (backward && scan_.begins_in_range) ||
                      asked_.checks_period;
    if (error != HA_ERR_END_OF_FILE || ends) return error;
    scan_.gap = side;
  }
  std::string from = scan_.gap == Gap::kLower ? scan_.lower : scan_.upper;
  // The end of the index.
  if (scan_.gap == side && from.empty()) return HA_ERR_END_OF_FILE;
  std::string lower = backward ? std::string() : from, upper = backward ? from : std::string();
  if (int error = begin_scan(*scan_.index, lower, upper)) return error;
  return first_step(buf, backward);
}

int ha_shale::index_next(uchar *buf) {
  return ranges_.asked != nullptr ? step_asked(buf) : finish_read(move(buf, false), buf);
}

int ha_shale::index_prev(uchar *buf) { return finish_read(move(buf, true), buf); }

// Of an exact search: the scan is of the equal rows only.
int ha_shale::index_next_same(uchar *buf, const uchar *key, uint length) {
  if (scan_.cells != nullptr) return finish_read(step(buf, false), buf);
  if (!scan_.is_of_prefix && scan_.cursor.begun()) {
    return handler::index_next_same(buf, key, length);
  }
  if (scan_.gap != Gap::kNone || !scan_.cursor.begun()) return finish_read(HA_ERR_END_OF_FILE, buf);
  return finish_read(first_step(buf, false), buf);
}

int ha_shale::index_first(uchar *buf) {
  if (of_number(active_index).is_spatial()) return finish_read(HA_ERR_END_OF_FILE, buf);
  bool bounded = asked_.has_range_end;
  asked_.has_range_end = false;
  int error = begin_scan(of_number(active_index), {}, bounded ? asked_.range_end : std::string());
  scan_.ends_in_range = bounded;
  if (error == 0 && asked_.in_range) read_ahead();
  return finish_read(error != 0 ? error : first_step(buf, false), buf);
}

int ha_shale::index_last(uchar *buf) {
  if (of_number(active_index).is_spatial()) return finish_read(HA_ERR_END_OF_FILE, buf);
  const bool bounded = asked_.has_range_start;
  asked_.has_range_start = false;
  int error = begin_scan(of_number(active_index), bounded ? asked_.range_start : std::string(), {});
  scan_.begins_in_range = bounded;
  if (error == 0) error = first_step(buf, true);
  if (error == HA_ERR_END_OF_FILE && bounded) {
    // To the server that would say that the index has no rows at all, and no other range is to be
    // read: the row before the range tells it to go on.
    error = begin_scan(of_number(active_index), {}, asked_.range_start);
    if (error == 0) error = first_step(buf, true);
  }
  return finish_read(error, buf);
}

// Before a range is read backward: its start bounds the scan, as its end does forward.
int ha_shale::prepare_range_scan(const key_range *start, const key_range *) {
  asked_.has_range_start = false;
  const Index &index = of_number(active_index);
  if (start == nullptr || index.codec == nullptr || index.is_spatial()) return 0;
  asked_.range_start.clear();
  index.codec->pack_tuple(start->key, start->keypart_map, &asked_.range_start);
  asked_.has_range_start =
      start->flag != HA_READ_AFTER_KEY || next_after_prefix(&asked_.range_start);
  return 0;
}

// The end of the range bounds the scan, so that it neither reads nor locks beyond.
int ha_shale::read_range_first(const key_range *start, const key_range *end, bool eq_range,
                               bool sorted) {
  asked_.has_range_end = false;
  if (end != nullptr && !eq_range) {
    asked_.range_end.clear();
    of_number(active_index).codec->pack_tuple(end->key, end->keypart_map, &asked_.range_end);
    asked_.has_range_end = end->flag == HA_READ_BEFORE_KEY || next_after_prefix(&asked_.range_end);
  }
  asked_.in_range = true;
  int error = handler::read_range_first(start, end, eq_range, sorted);
  asked_.has_range_end = asked_.in_range = false;
  return error;
}

Item *ha_shale::idx_cond_push(uint index, Item *condition) {
  // The condition is looked at before the row is read: what it needs has to be in the index.
  if (index == table->s->primary_key) return condition;
  // The server takes MATCH for a function of its columns alone. It asks for the relevance of the
  // last row that was read, which an entry is not yet.
  if (table->fulltext_searched) return condition;
  pushed_idx_cond = condition;
  pushed_idx_cond_keyno = index;
  in_range_check_pushed_down = true;
  return nullptr;
}

void ha_shale::note_locked(const Index &index, std::string_view key) {
  if (lock_mode() == SHALE_LOCK_NONE || !trx()->read_committed()) return;
  LastRow::Locked &locked = is_primary(index) ? last_.locked_row : last_.locked_entry;
  locked.index = &index;
  locked.key.assign(key);
}

// At READ COMMITTED the row last read is given up if it does not match. The engine keeps the lock
// if anything else relies on it: an earlier read, also of an earlier statement, or a write.
void ha_shale::unlock_row() {
  // It was not locked.
  if (semi_ == Semi::kDid) semi_ = Semi::kTry;
  for (LastRow::Locked *locked : {&last_.locked_row, &last_.locked_entry}) {
    if (locked->index != nullptr) trx()->unlock(locked->index->tree, locked->key);
  }
  forget_locked();
}

void ha_shale::try_semi_consistent_read(bool yes) {
  semi_ = yes && thd_tx_isolation(ha_thd()) <= ISO_READ_COMMITTED ? Semi::kTry : Semi::kNo;
  if (semi_ == Semi::kNo) scan_.cursor.peek_locked(false);
}
