// Rounds through the rows that writers have changed.

#include "engine/changed_rows.h"

namespace shale_sql {

Error ChangedRows::begin(const shale_tree *source, const std::string &name,
                         std::shared_ptr<ChangedRows> *changed) {
  shale_tracker *tracker = nullptr;
  shale_tree *tree = nullptr;
  shale_snapshot *first = nullptr;
  if (Error error = consume_error(
          shale_tracker_new(source, name.c_str(), 0, &tracker, &tree, &first))) {
    return error;
  }
  *changed = std::make_shared<ChangedRows>();
  (*changed)->name_ = name;
  (*changed)->tracker_.reset(tracker);
  (*changed)->tree_.reset(tree);
  (*changed)->first_.reset(first);
  return 0;
}

Error ChangedRows::begin_round(bool last, Round *round) const {
  shale_round *begun = nullptr;
  shale_snapshot *before = nullptr, *after = nullptr;
  Error error =
      consume_error(shale_round_begin(tracker_.get(), !last, &begun, &before, &after));
  round->round.reset(begun);
  round->before.reset(before);
  round->after.reset(after);
  return error;
}

Error ChangedRows::end_round(Round *round) {
  round->before.reset();
  round->after.reset();
  return consume_error(shale_round_end(tracker_.get(), round->round.release()));
}

}  // namespace shale_sql
