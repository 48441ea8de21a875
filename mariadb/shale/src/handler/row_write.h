// The writes of one row, to the table and to its indexes: one call of the engine does all or none.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"
#include "tables/links.h"

#include <string>
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
  // The parent's entry must be there, which is locked shared: what was added before counts. The
  // link has to stay until it is applied.
  void require(const Link &link, std::string key);
  struct Required {
    const Link *link;
    std::string key;
  };
  // An insert whose key has a value, or a parent that is not there.
  struct Refused {
    size_t index = 0;
    std::string_view key;
    BytesHandle value;
    const Required *parent = nullptr;
  };
  // Does what was added, or nothing of it: with an error, and if something is refused.
  Error apply(Refused *found);
  // What the last of these calls has required.
  const std::vector<Required> &required() const { return required_; }
  // The same where something else has to be done before the next operations: what was done is
  // undone by `end`.
  Error apply_part(Refused *found);
  // Undoes what was applied in parts if there was an error. The answer is that of undoing it.
  Error end(int error);
  bool is_in_parts() const { return has_savepoint_; }
  bool watches() const { return watched_ != nullptr; }
  bool changed() const { return changed_; }

 private:
  void place_required();
  shale_error *apply_one(const shale_operation &one, shale_bytes **existing);

  shale_txn *txn_ = nullptr;
  const shale_tree *watched_ = nullptr;
  bool changed_ = false;
  bool has_savepoint_ = false;
  size_t savepoint_ = 0;
  std::vector<shale_operation> operations_;
  std::vector<size_t> indexes_;  // of the operations; of what is required, the place there
  std::vector<Required> required_;
  bool applied_ = false;  // what is in `required_`
};

}  // namespace shale_sql
