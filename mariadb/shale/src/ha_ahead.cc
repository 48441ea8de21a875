// Rows of a range of a secondary index, read ahead: entries are taken in the order of the index,
// and their rows are read together, which costs less than one by one. More and more at a time, so
// that a statement that wants only the first rows reads few in vain. Only of plain reads: what
// locks must not lock rows that are never looked at, and who writes might change a row that was
// read ahead.

#include "ha_shale.h"

#include "errors.h"
#include "trx.h"

using namespace shale_sql;

namespace {

constexpr size_t kMost = 128;
constexpr size_t kGrowth = 4;

}  // namespace

void ha_shale::Ahead::clear() {
  most = next = 0;
  ended = 0;
  keys.clear();
  primaries.clear();
  values.clear();
}

// The scan that has begun may read ahead.
void ha_shale::read_ahead() {
  bool plain = lock_mode() == SHALE_LOCK_NONE && !read_whole_rows_ && !keyread_only_ &&
               thd_sql_command(ha_thd()) == SQLCOM_SELECT;
  if (plain && scanned_ != nullptr && !is_primary(*scanned_)) ahead_.most = 1;
}

int ha_shale::fill_ahead(uchar *buf, shale_txn *txn) {
  ahead_.next = 0;
  ahead_.keys.clear();
  ahead_.primaries.clear();
  ahead_.values.clear();
  while (ahead_.ended == 0 && ahead_.primaries.size() < ahead_.most) {
    bool found = false, skip = false;
    std::string_view value, primary_key;
    int error = cursor_.step(txn, false, &found);
    if (error == 0 && !found) error = HA_ERR_END_OF_FILE;
    if (error == 0) error = cursor_.value(&value);
    if (error == 0) error = look_at_entry(buf, value, &primary_key, &skip);
    // What was found before it comes first.
    ahead_.ended = error;
    if (error != 0) break;
    if (skip) {
      if (thd_kill_level(ha_thd()) != THD_IS_NOT_KILLED) return HA_ERR_ABORTED_BY_USER;
      continue;
    }
    ahead_.keys.emplace_back(cursor_.key());
    ahead_.primaries.emplace_back(primary_key);
  }
  ahead_.most = std::min(ahead_.most * kGrowth, kMost);
  size_t count = ahead_.primaries.size();
  std::vector<const void *> keys(count);
  std::vector<size_t> lengths(count);
  std::vector<shale_bytes *> values(count, nullptr);
  for (size_t i = 0; i < count; i++) {
    keys[i] = ahead_.primaries[i].data();
    lengths[i] = ahead_.primaries[i].size();
  }
  if (count == 0) return 0;
  int error = number_of(shale_txn_multi_get(txn, primary().tree, keys.data(), lengths.data(), count,
                                            values.data()));
  for (shale_bytes *value : values) ahead_.values.emplace_back(value);
  return error;
}

int ha_shale::step_ahead(uchar *buf) {
  shale_txn *txn = nullptr;
  if (int error = trx()->get(&txn)) return error;
  for (;;) {
    if (ahead_.next == ahead_.primaries.size()) {
      if (ahead_.ended != 0) return ahead_.ended;
      if (int error = fill_ahead(buf, txn)) return error;
      continue;
    }
    size_t at = ahead_.next++;
    ahead_.key = ahead_.keys[at];
    if (!ahead_.values[at]) {
      bool skip = false;
      if (int error = row_is_missing(*scanned_, &skip)) return error;
      continue;
    }
    current_primary_ = ahead_.primaries[at];
    return fill_from_primary(buf, current_primary_, view_of(ahead_.values[at]));
  }
}
