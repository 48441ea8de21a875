// One row's writes, as the engine takes them.

#include "handler/row_write.h"

#include "server.h"

#include "engine/errors.h"

namespace shale_sql {

void RowWrite::begin(shale_txn *txn, const shale_tree *watched) {
  txn_ = txn;
  watched_ = watched;
  changed_ = has_savepoint_ = applied_ = false;
  operations_.clear();
  indexes_.clear();
  if (!required_.empty()) required_.clear();
}

void RowWrite::add(size_t index, const shale_tree *tree, shale_action action, std::string_view key,
                   std::string_view value) {
  operations_.push_back({tree, action, key.data(), key.size(), value.data(), value.size()});
  indexes_.push_back(index);
}

void RowWrite::require(const Link &link, std::string key) {
  if (applied_) required_.clear();
  applied_ = false;
  // Keys move as the list grows.
  operations_.push_back({link.other.get(), SHALE_ACTION_REQUIRE, nullptr, 0, nullptr, 0});
  indexes_.push_back(required_.size());
  required_.push_back({&link, std::move(key)});
}

// One operation is whole by itself.
shale_error *RowWrite::apply_one(const shale_operation &one, shale_bytes **existing) {
  bool inserted = false;
  switch (one.action) {
    case SHALE_ACTION_PUT:
      return shale_txn_put(txn_, one.tree, one.key, one.key_len, one.value, one.value_len);
    case SHALE_ACTION_DELETE:
      return shale_txn_delete(txn_, one.tree, one.key, one.key_len, nullptr, 0);
    case SHALE_ACTION_PUT_UNLOCKED:
      return shale_txn_put_unlocked(txn_, one.tree, one.key, one.key_len, one.value,
                                    one.value_len);
    default:
      return shale_txn_insert(
          txn_, one.tree, one.key, one.key_len, one.value, one.value_len,
          one.action == SHALE_ACTION_INSERT ? SHALE_LOCK_EXCLUSIVE : SHALE_LOCK_SHARED, &inserted,
          existing);
  }
}

// Says where the keys are that are required.
void RowWrite::place_required() {
  if (applied_) required_.clear();
  applied_ = true;
  for (size_t i = 0; !required_.empty() && i < operations_.size(); i++) {
    if (operations_[i].action != SHALE_ACTION_REQUIRE) continue;
    const std::string &key = required_[indexes_[i]].key;
    operations_[i].key = key.data();
    operations_[i].key_len = key.size();
  }
}

Error RowWrite::apply(Refused *found) {
  found->value.reset();
  found->parent = nullptr;
  if (!required_.empty()) place_required();
  if (operations_.empty()) return {};
  size_t place = 0;
  shale_bytes *existing = nullptr;
  bool alone = operations_.size() == 1 && watched_ == nullptr && required_.empty() &&
               operations_[0].action != SHALE_ACTION_DELETE_UNLOCKED;
  Error error =
      consume_error(alone ? apply_one(operations_[0], &existing)
                          : shale_txn_apply(txn_, operations_.data(), operations_.size(), watched_,
                                            &changed_, &place, &existing));
  if (existing != nullptr) {
    const shale_operation &refused = operations_[place];
    found->index = indexes_[place];
    found->key = {static_cast<const char *>(refused.key), refused.key_len};
    found->value.reset(existing);
  } else if (!error && !alone && place < operations_.size()) {
    found->parent = &required_[indexes_[place]];
  }
  operations_.clear();
  indexes_.clear();
  return error;
}

Error RowWrite::apply_part(Refused *found) {
  if (!has_savepoint_) {
    if (Error error = consume_error(shale_txn_savepoint(txn_, &savepoint_))) return error;
    has_savepoint_ = true;
  }
  return apply(found);
}

Error RowWrite::end(int error) {
  // After a deadlock the engine has undone the whole transaction.
  if (!has_savepoint_ || error == HA_ERR_LOCK_DEADLOCK) return {};
  if (error != 0) {
    if (Error undone = consume_error(shale_txn_rollback_to(txn_, savepoint_))) return undone;
  }
  return consume_error(shale_txn_release(txn_, savepoint_));
}

}  // namespace shale_sql
