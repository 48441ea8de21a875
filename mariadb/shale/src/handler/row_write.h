// The writes of one row, to the table and to its indexes: one call of the engine does all or none.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"

#include <string_view>
#include <vector>

namespace shale_sql {

class RowWrite {
 public:
  // The engine looks whether others have changed the keys of `watched`; nullptr: it does not.
  void begin(shale_txn *txn, const shale_tree *watched);
  // Key and value have to stay until they are applied. `index` names the index in a duplicate.
  void add(size_t index, const shale_tree *tree, shale_action action, std::string_view key,
           std::string_view value = {});
  // An insert whose key has a value.
  struct Duplicate {
    size_t index = 0;
    std::string_view key;
    BytesHandle value;
  };
  // Does what was added, or nothing of it: with an error, and if an insert finds a value.
  Error apply(Duplicate *found);
  // The same where something else has to be done before the next operations: what was done is
  // undone by `end`.
  Error apply_part(Duplicate *found);
  // Undoes what was applied in parts if there was an error. The answer is that of undoing it.
  Error end(int error);
  bool watches() const { return watched_ != nullptr; }
  bool changed() const { return changed_; }

 private:
  shale_error *apply_one(const shale_operation &one, shale_bytes **existing);

  shale_txn *txn_ = nullptr;
  const shale_tree *watched_ = nullptr;
  bool changed_ = false;
  bool has_savepoint_ = false;
  size_t savepoint_ = 0;
  std::vector<shale_operation> operations_;
  std::vector<size_t> indexes_;  // of the operations
};

}  // namespace shale_sql
