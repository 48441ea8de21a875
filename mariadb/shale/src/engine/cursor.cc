// Steps of a scan, whichever of the two it is, and reads of several keys at once.

#include "engine/cursor.h"

#include "engine/errors.h"

namespace shale_sql {

namespace {

// The values of a block lie one after the other: what the next step reads is asked for now. Beyond
// the end of the block it does no harm.
void fetch_after(std::string_view value) {
  constexpr size_t kLine = 64, kLines = 3;
  const char *next = value.data() + value.size();
  for (size_t line = 0; line < kLines; line++) __builtin_prefetch(next + line * kLine);
}

// A bound as the engine takes it.
struct Bound {
  const char *data;
  size_t bytes;
};

// Without one the caller's text may be anything.
Bound bound(bool is_there, std::string_view text) {
  if (!is_there) return {nullptr, 0};
  return {text.data(), text.size()};
}

}  // namespace

Error Cursor::begin(shale_txn *txn, const shale_tree *tree, int lock, std::string_view lower,
                    bool has_upper, std::string_view upper, bool fill_cache, bool skip_locked) {
  if (lock == SHALE_LOCK_NONE) {
    if (!scan_) scan_ = std::move(kept_);
    if (scan_ && fill_cache == fills_cache_) return begin_again(txn, tree, lower, has_upper, upper);
    return begin_plain(false, txn, tree, lower, has_upper, upper, fill_cache);
  }
  forget();
  shale_locking_scan *begun = nullptr;
  const Bound from = bound(!lower.empty(), lower), to = bound(has_upper, upper);
  Error error = consume_error(shale_locking_scan_new(txn, tree, lock, from.data, from.bytes,
                                                     to.data, to.bytes, &begun));
  locking_.reset(begun);
  if (error || !skip_locked) return error;
  return consume_error(shale_locking_scan_skip_locked(begun));
}

// Of a join the next search is often of the same tree, at the same moment: what is open stays so.
Error Cursor::begin_again(shale_txn *txn, const shale_tree *tree, std::string_view lower,
                          bool has_upper, std::string_view upper) {
  placed_ = leaves_values_ = false;
  key_ = value_ = {};
  const Bound from = bound(!lower.empty(), lower), to = bound(has_upper, upper);
  Error error = consume_error(
      shale_txn_scan_again(txn, tree, scan_.get(), from.data, from.bytes, to.data, to.bytes));
  if (error) end();
  return error;
}

Error Cursor::begin_newest(shale_txn *txn, const shale_tree *tree, std::string_view lower,
                           bool has_upper, std::string_view upper) {
  return begin_plain(true, txn, tree, lower, has_upper, upper, true);
}

Error Cursor::begin_plain(bool newest, shale_txn *txn, const shale_tree *tree,
                          std::string_view lower, bool has_upper, std::string_view upper,
                          bool fill_cache) {
  forget();
  shale_scan *begun = nullptr;
  const Bound from = bound(!lower.empty(), lower), to = bound(has_upper, upper);
  Error error = consume_error(shale_txn_scan(txn, tree, newest, from.data, from.bytes, to.data,
                                             to.bytes, fill_cache, &begun));
  scan_.reset(begun);
  fills_cache_ = fill_cache;
  return error;
}

Error Cursor::step(shale_txn *txn, bool backward, bool *found) {
  *found = false;
  key_ = {};
  if (locking_) {
    placed_ = true;
    shale_error *error = shale_locking_scan_step(locking_.get(), txn, backward, found);
    if (error != nullptr) return consume_error(error);
    return *found ? take_row() : Error();
  }
  if (!scan_) return 0;
  int how = placed_ ? (backward ? SHALE_PREV : SHALE_NEXT) : (backward ? SHALE_LAST : SHALE_FIRST);
  placed_ = true;
  const void *key = nullptr, *value = nullptr;
  size_t key_len = 0, value_len = 0;
  shale_error *error = leaves_values_
      ? shale_scan_step(scan_.get(), how, &key, &key_len, nullptr, nullptr)
      : shale_scan_step(scan_.get(), how, &key, &key_len, &value, &value_len);
  key_ = {static_cast<const char *>(key), key_len};
  value_ = {static_cast<const char *>(value), value_len};
  *found = key != nullptr;
  if (*found && !backward && !leaves_values_) fetch_after(value_);
  return consume_error(error);
}

Error Cursor::read_value() {
  const void *value = nullptr;
  size_t length = 0;
  Error error = consume_error(shale_scan_value(scan_.get(), &value, &length));
  value_ = {static_cast<const char *>(value), length};
  return error;
}

// Where a scan that locks is.
Error Cursor::take_row() {
  const void *key = nullptr, *value = nullptr;
  size_t key_len = 0, value_len = 0;
  Error error =
      consume_error(shale_locking_scan_row(locking_.get(), &key, &key_len, &value, &value_len));
  key_ = {static_cast<const char *>(key), key_len};
  value_ = {static_cast<const char *>(value), value_len};
  return error;
}

void Cursor::peek_locked(bool peeks) {
  // It fails for no scan that there is.
  if (locking_) ErrorHandle ignored(shale_locking_scan_peek_locked(locking_.get(), peeks));
}

Error Cursor::lock_row(shale_txn *txn, bool *found) {
  *found = false;
  shale_error *error = shale_locking_scan_lock_row(locking_.get(), txn, found);
  if (error != nullptr) return consume_error(error);
  return *found ? take_row() : Error();
}

Error Cursor::step_from(shale_txn *txn, std::string_view key, bool backward, bool *found) {
  placed_ = true;
  if (scan_) {
    shale_scan *scan = scan_.get();
    shale_seek how = backward ? SHALE_AT_OR_BEFORE : SHALE_AT_OR_AFTER;
    if (Error error = consume_error(shale_scan_move(scan, how, key.data(), key.size()))) {
      return error;
    }
    size_t key_len = 0;
    *found = at_row(scan);
    if (!*found) return 0;
    key_ = {static_cast<const char *>(shale_scan_key(scan, &key_len)), key_len};
    if (key_ == key) return step(txn, backward, found);
    return read_value();
  }
  do {
    if (Error error = step(txn, backward, found)) return error;
  } while (*found && (backward ? key_ >= key : key_ <= key));
  return 0;
}

Error Cursor::seek(shale_txn *txn, std::string_view key, bool *found) {
  if (!scan_) {
    do {
      if (Error error = step(txn, false, found)) return error;
    } while (*found && key_ < key);
    return 0;
  }
  placed_ = true;
  shale_scan *scan = scan_.get();
  *found = false;
  if (Error error =
          consume_error(shale_scan_move(scan, SHALE_AT_OR_AFTER, key.data(), key.size()))) {
    return error;
  }
  size_t key_len = 0;
  const void *at = shale_scan_key(scan, &key_len);
  *found = at != nullptr;
  key_ = {static_cast<const char *>(at), key_len};
  return *found ? read_value() : Error();
}

void Cursor::end() {
  scan_.reset();
  locking_.reset();
  placed_ = leaves_values_ = false;
  key_ = value_ = {};
}

void Cursor::end_for_now() {
  kept_ = std::move(scan_);
  end();
}

void Cursor::forget() {
  end();
  kept_.reset();
}

Error read_together(shale_txn *txn, const shale_tree *tree,
                    const std::vector<std::string_view> &keys, std::vector<BytesHandle> *values) {
  values->clear();
  if (keys.empty()) return 0;
  std::vector<const void *> places;
  std::vector<size_t> lengths;
  for (std::string_view key : keys) {
    places.push_back(key.data());
    lengths.push_back(key.size());
  }
  std::vector<shale_bytes *> found(keys.size(), nullptr);
  Error error = consume_error(
      shale_txn_multi_get(txn, tree, places.data(), lengths.data(), keys.size(), found.data()));
  for (shale_bytes *value : found) values->emplace_back(value);
  return error;
}

}  // namespace shale_sql
