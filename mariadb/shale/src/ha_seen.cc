// Index entries of rows that the transaction writes and its snapshot shows otherwise.
//
// A write works on what is committed now, and the transaction then sees the row as it has written it
// (InnoDB's users know it so). Entries that the write leaves alone are seen as the snapshot has them:
// one that was made after it would be missing, one that is gone by now would still be there. So they
// are written too. Entries of unique indexes are left: they may be another row's by now.

#include "ha_shale.h"

#include "engine.h"
#include "errors.h"
#include "trx.h"

using namespace shale_sql;

// Before a row is written: whether the transaction sees it as it is. `old_row` is what is overwritten,
// nullptr for nothing.
int ha_shale::look_at_seen(shale_txn *txn, const std::string &primary_key, const uchar *old_row) {
  seen_differs_ = seen_there_ = false;
  if (indexes_.size() < 2 || !trx()->has_snapshot()) return 0;
  shale_bytes *found = nullptr;
  if (int error = number_of(shale_txn_get(txn, primary().tree, SHALE_LOCK_NONE,
                                          primary_key.data(), primary_key.size(), &found))) {
    return error;
  }
  if (old_row == nullptr && found == nullptr) return 0;
  BytesHandle bytes(found);
  if (old_row != nullptr && found != nullptr) {
    value_.clear();
    rows_->pack(old_row, &value_);
    if (view_of(bytes) == value_) return 0;
  }
  seen_differs_ = true;
  if (found == nullptr) return 0;
  seen_row_.assign(reinterpret_cast<const char *>(table->s->default_values), table->s->reclength);
  seen_row_.resize(table->s->rec_buff_length);
  uchar *row = reinterpret_cast<uchar *>(seen_row_.data());
  if (!rows_->unpack(primary_key, view_of(bytes), nullptr, row)) {
    return failed(kErrDamagedRow, "a row of table " + shared_->path +
                                      " is damaged; CHECK TABLE says which");
  }
  seen_.primary = primary_key;
  pack_keys(row, &seen_);
  seen_there_ = true;
  return 0;
}

// After it has been written, with these keys; nullptr: deleted, or moved to another primary key.
int ha_shale::hide_seen(shale_txn *txn, const RowKeys *is) {
  if (!seen_differs_) return 0;
  for (size_t place = 1; place < indexes_.size(); place++) {
    const Index &index = indexes_[place];
    bool own = !index.unique || (seen_there_ && seen_.has_null[place]);
    if (seen_there_ && own && (is == nullptr || seen_.keys[place] != is->keys[place])) {
      const std::string &key = seen_.keys[place];
      if (int error = number_of(shale_txn_delete(txn, index.tree, key.data(), key.size()))) {
        return error;
      }
    }
    if (is == nullptr) continue;
    const std::string &key = is->keys[place], &value = is->values[place];
    if (int error = number_of(shale_txn_put(txn, index.tree, key.data(), key.size(), value.data(),
                                            value.size()))) {
      return error;
    }
  }
  return 0;
}
