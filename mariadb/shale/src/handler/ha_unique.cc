// Unique keys of which the server checks the rows itself, before it writes one: of long values,
// which are in the index by a hash, and WITHOUT OVERLAPS. It looks for a row that is in the way,
// and nothing that it reads keeps others from adding one meanwhile.
//
// So each such look-up, and each write of an entry, locks a place to the end of the transaction:
// the beginning of the key that two rows in each other's way have in common (the hash; the columns
// before the period), which is the key of no entry. Who comes second waits there, at every
// isolation level, and then finds the other's row.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "handler/search.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

constexpr unsigned kPeriodParts = 2;  // the last ones: the end, then the beginning

bool is_hash(const KEY &key) { return key.algorithm == HA_KEY_ALG_LONG_HASH; }

// The server has periods ascend.
bool is_period(const KEY &key) {
  return key.without_overlaps && key.user_defined_key_parts > kPeriodParts;
}

// Whether a range, whose place is locked, has no entry that is committed or the transaction's own:
// then there is nothing to wait for, and no gap to lock beside the place. (At REPEATABLE READ each
// search would hold a range of its own, and every write would look through all of them.) What is
// newest, as no snapshot is to be taken for it; of own writes a scan shows that passes over locks.
Error look_for_entries(shale_txn *txn, const shale_tree *tree, std::string_view lower,
                     std::string_view upper, bool *empty) {
  shale_scan *begun = nullptr;
  Error error = consume_error(shale_scan_new(tree, nullptr, lower.data(), lower.size(),
                                             upper.data(), upper.size(), true, &begun));
  ScanHandle scan(begun);
  if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
  if (error) return error;
  *empty = !at_row(begun);
  if (!*empty) return 0;
  Cursor own;
  bool found = false;
  error = own.begin(txn, tree, SHALE_LOCK_SHARED, lower, true, upper, true, true);
  if (!error) error = own.step(txn, false, &found);
  *empty = !found;
  return error;
}

}  // namespace

int ha_shale::lock_place(const Index &index, std::string_view place) {
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  shale_bytes *none = nullptr;
  int error = consume_error(shale_txn_get(txn, index.tree, SHALE_LOCK_EXCLUSIVE, place.data(),
                                      place.size(), &none));
  BytesHandle ignored(none);
  return error;
}

// Before a search: locks the place if it is such a look-up, and bounds it to rows of that place.
int ha_shale::begin_check(const Index &index, const uchar *tuple, enum ha_rkey_function how,
                          Search *search) {
  asked_.checks_period = false;
  if (index.number == MAX_KEY || lock_mode() != SHALE_LOCK_EXCLUSIVE) return 0;
  const KEY &key = table->key_info[index.number];
  std::string place;
  bool of_hash = is_hash(key) && search->exact;
  if (of_hash) place = search->lower;
  // The server has the tuple of such a look-up in a buffer that it uses for no other read.
  const bool of_server = tuple != nullptr && tuple == table->file->lookup_buffer;
  if (!of_hash && (!is_period(key) || how != HA_READ_AFTER_KEY || !of_server)) return 0;
  if (!of_hash) {
    uint columns = key.user_defined_key_parts - kPeriodParts;
    index.codec->pack_tuple(tuple, (key_part_map{1} << columns) - 1, &place);
    search->upper = place;
    search->has_upper = next_after_prefix(&search->upper);
    // A part of a column is not to be had from the index, and is compared.
    asked_.checks_period = true;
    if (!index.codec->covers()) asked_.keys_only = false;
  }
  if (int error = lock_place(index, place)) return error;
  if (!search->possible || !search->has_upper) return 0;
  shale_txn *txn = nullptr;
  bool empty = search->lower >= search->upper;
  int error = note(trx()->get(&txn));
  if (error == 0 && !empty) {
    error = note(look_for_entries(txn, index.tree, search->lower, search->upper, &empty));
  }
  if (empty) search->possible = false;
  return error;
}

// The place of an entry that is to be written; false: its key has none. For a period
// the keys of those that end after it begins, up to the end of the place: the first of them is in
// the way if it begins before the other's end.
bool ha_shale::place_of_entry(size_t place, const RowKeys &keys, Place *found) const {
  const Index &index = indexes_[place];
  const KEY &key = table->key_info[index.number];
  if (keys.has_null[place] || !(is_hash(key) || is_period(key))) return false;
  std::string_view bytes = keys.keys[place];
  found->is_period = is_period(key);
  if (!found->is_period) {
    found->place = bytes.substr(0, bytes.size() - keys.primary.size());
    return true;
  }
  std::vector<size_t> ends;
  if (!index.codec->part_ends(bytes, &ends) || ends.size() <= kPeriodParts) return false;
  size_t columns = ends[ends.size() - 3], end = ends[ends.size() - 2], begin = ends.back();
  found->place = bytes.substr(0, columns);
  found->end = bytes.substr(columns, end - columns);
  found->begin = bytes.substr(end, begin - end);
  return true;
}

int ha_shale::lock_place_of(size_t place, const RowKeys &keys) {
  Place found;
  if (!place_of_entry(place, keys, &found)) return 0;
  if (int error = write_part()) return error;
  return lock_place(indexes_[place], found.place);
}

// Locks the place of an entry that is about to be written, and finds who is in the way of a period:
// as bytes, so that it does not matter how much of a column is in the index. Rows of history are in
// nobody's way.
int ha_shale::check_entry(const uchar *row, size_t place, const RowKeys &keys) {
  Place mine;
  if (!place_of_entry(place, keys, &mine)) return 0;
  // What comes before the entry is written, and locked, before.
  if (int error = write_part()) return error;
  const Index &index = indexes_[place];
  if (int error = lock_place(index, mine.place)) return error;
  if (!mine.is_period) return 0;
  if (table->versioned()) {
    const Field *end = table->vers_end_field();
    if (!end->is_max(end->ptr_in_record(row))) return 0;
  }
  std::string from(mine.place), to(mine.place);
  from.append(mine.begin);
  if (!next_after_prefix(&from) || !next_after_prefix(&to)) return 0;
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  bool empty = from >= to;
  if (!empty) {
    if (int error = note(look_for_entries(txn, index.tree, from, to, &empty))) return error;
  }
  if (empty) return 0;
  Cursor cursor;
  int error = note(cursor.begin(txn, index.tree, SHALE_LOCK_SHARED, from, true, to, true, false));
  if (error != 0) return error;
  bool there = false;
  if ((error = note(cursor.step(txn, false, &there)))) return error;
  if (!there) return 0;
  std::vector<size_t> ends;
  std::string_view primary;
  if (!index.codec->part_ends(cursor.key(), &ends) ||
      !index.codec->primary_of(cursor.key(), cursor.value(), &primary)) {
    return failed(kErrDamagedRow, "an entry of a unique index of " + shared_->path + " is damaged");
  }
  size_t end = ends[ends.size() - 2];
  return cursor.key().substr(end, ends.back() - end) < mine.end ? duplicate(place, primary) : 0;
}
