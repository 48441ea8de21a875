// Which rows of a table are changed while its trees are made anew.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"

#include <string>
#include <string_view>

namespace shale_sql {

// Who changes a row puts its key into `tree`, and holds on to this for as long as what it has
// written is not committed. The tree goes with the last of them.
class ChangedRows {
 public:
  // Makes the tree `name`. To be called while nobody is writing to `source`.
  static Error begin(const shale_tree *source, const std::string &name,
                     std::shared_ptr<ChangedRows> *changed);

  const std::string &name() const { return name_; }
  const shale_tree *tree() const { return tree_.get(); }
  // The rows as the copy begins with; to be asked once.
  SnapshotHandle first() { return std::move(first_); }

  // The rows that have been changed since, and how they are now. The last round is the one that is
  // begun while nobody writes.
  struct Round {
    SnapshotHandle before, after;
    RoundHandle round;
  };
  Error begin_round(bool last, Round *round) const;
  Error end_round(Round *round);

 private:
  std::string name_;
  TrackerHandle tracker_;
  TreeHandle tree_;
  SnapshotHandle first_;
};

// Calls `each` with the keys of a round, until it answers with an error.
template <typename Each>
Error each_key(const ChangedRows::Round &round, Each each) {
  Error error;
  for (bool first = true; !error; first = false) {
    const void *key = nullptr;
    size_t length = 0;
    error = consume_error(shale_round_next(round.round.get(), first, &key, &length));
    if (error || key == nullptr) break;
    error = each(std::string_view(static_cast<const char *>(key), length));
  }
  return error;
}

}  // namespace shale_sql
