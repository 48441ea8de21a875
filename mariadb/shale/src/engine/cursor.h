// A position in an index: a plain scan of what a transaction sees, or one that locks.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"

#include <string_view>
#include <vector>

namespace shale_sql {

class Cursor {
 public:
  // Over [lower, upper) of a tree; no upper bound without `has_upper`.
  Error begin(shale_txn *txn, const shale_tree *tree, int lock, std::string_view lower,
              bool has_upper, std::string_view upper, bool fill_cache, bool skip_locked);
  // The same, of what is committed by now and of the transaction's own writes: for rows that are
  // locked afterwards. No lock is taken, and no snapshot for later reads.
  Error begin_newest(shale_txn *txn, const shale_tree *tree, std::string_view lower, bool has_upper,
                     std::string_view upper);
  // To the next row, or to the one before; at first to the first or the last. `found` becomes false
  // at the end.
  Error step(shale_txn *txn, bool backward, bool *found);
  // Instead of the first step: to the row after `key`, or before it, as an earlier scan's next
  // step.
  Error step_from(shale_txn *txn, std::string_view key, bool backward, bool *found);
  // To the first row at or after `key`, which is not before the row it is at.
  Error seek(shale_txn *txn, std::string_view key, bool *found);
  // Of one that locks, at READ COMMITTED: what others have locked is shown, without a lock.
  void peek_locked(bool peeks);
  bool is_only_shown() const { return locking_ && !shale_locking_scan_is_locked(locking_.get()); }
  // Locks the row that is only shown; `found` becomes false if it is gone.
  Error lock_row(shale_txn *txn, bool *found);
  // The row of an earlier scan is the one that it is at.
  void show(std::string_view key, std::string_view value) {
    key_ = key;
    value_ = value;
  }
  void end();
  // The same, but a plain scan is kept open for the next begin; `forget` ends that as well.
  void end_for_now();
  void forget();
  bool begun() const { return scan_ != nullptr || locking_ != nullptr; }
  // Of a plain scan: steps read no values, for there may be large ones that nobody wants.
  void leave_values(bool leaves) { leaves_values_ = leaves; }
  bool has_value() const { return value_.data() != nullptr; }
  // The value that a step has left.
  Error read_value();
  // Whether it has not made a step yet.
  bool is_fresh() const { return begun() && !placed_; }

  // The row it is at, until the next step.
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 private:
  ScanHandle scan_, kept_;
  LockingScanHandle locking_;
  Error begin_plain(bool newest, shale_txn *txn, const shale_tree *tree, std::string_view lower,
                    bool has_upper, std::string_view upper, bool fill_cache);
  Error begin_again(shale_txn *txn, const shale_tree *tree, std::string_view lower,
                    bool has_upper, std::string_view upper);
  Error take_row();

  bool placed_ = false, leaves_values_ = false;
  bool fills_cache_ = false;  // of a plain scan
  std::string_view key_, value_;
};

// What a transaction sees under several keys of a tree, read together; nothing where there is none.
Error read_together(shale_txn *txn, const shale_tree *tree,
                    const std::vector<std::string_view> &keys, std::vector<BytesHandle> *values);

}  // namespace shale_sql
