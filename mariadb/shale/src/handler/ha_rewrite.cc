// Rows that are written on top of what others have committed since the snapshot.
//
// A write works on the row as it is now, and from then on the transaction sees what it has written.
// The row's entries in indexes may be others than those that the snapshot shows, also where the
// write changes no column. So the write puts down all entries of such a row, and plain reads leave
// out those that come from the snapshot.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "txn/trx.h"

using namespace shale_sql;

// Puts down the entries that an update leaves as they were, if the row was changed. Nobody else
// writes them who has not locked the row: without locks of their own nobody waits for what InnoDB
// would not have locked.
void ha_shale::keep_entries(const RowKeys &was, const RowKeys &is) {
  for (size_t place = 1; place < indexes_.size(); place++) {
    if (indexes_[place].many != nullptr) {
      const auto nothing = [](const auto &) {};
      compare_entries(was.many[place], is.many[place], nothing, nothing,
                      [&](const ManyEntry &entry) {
                        row_write_.add(place, indexes_[place].tree, SHALE_ACTION_PUT_IF_CHANGED,
                                       entry.key, entry.value);
                      });
      continue;
    }
    const std::string &key = is.keys[place], &value = is.values[place];
    if (key != was.keys[place] || value != was.values[place]) continue;
    row_write_.add(place, indexes_[place].tree, SHALE_ACTION_PUT_IF_CHANGED, key, value);
  }
}

// Before a read; one that locks sees what is committed, in all indexes.
int ha_shale::begin_plain_read(Trx *trx) {
  scan_.may_be_outdated = false;
  if (lock_mode() != SHALE_LOCK_NONE) return 0;
  scan_.may_be_outdated = trx->rewrote();
  return note(trx->see(*shared_));
}

// Whether an entry is the snapshot's, and its row has been rewritten.
int ha_shale::is_outdated(const Index &index, std::string_view key, std::string_view primary_key,
                          bool *outdated) {
  shale_txn *txn = nullptr;
  bool wrote = false, changed = false;
  *outdated = false;
  if (int error = note(trx()->get(&txn))) return error;
  int error = consume_error(shale_txn_wrote(txn, primary().tree, primary_key.data(),
                                        primary_key.size(), &wrote, nullptr));
  if (error != 0 || !wrote) return error;
  error = consume_error(shale_txn_wrote(txn, primary().tree, primary_key.data(), primary_key.size(),
                                    nullptr, &changed));
  if (error != 0 || !changed) return error;
  error = consume_error(
      shale_txn_wrote(txn, index.tree, key.data(), key.size(), &wrote, nullptr));
  *outdated = error == 0 && !wrote;
  return error;
}
