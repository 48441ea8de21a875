// Rounds through the rows that writers have changed.

#include "engine/changed_rows.h"

namespace shale_sql {

Error ChangedRows::begin(const shale_tree *source, const std::string &name,
                         std::shared_ptr<ChangedRows> *changed) {
  shale_tracker *begun = nullptr;
  shale_tree *made = nullptr;
  Error error = consume_error(shale_tracker_new(source, name.c_str(), 0, &begun, &made));
  TrackerHandle tracker(begun);
  TreeHandle tree(made);
  if (!error) {
    *changed = std::make_shared<ChangedRows>(name, std::move(tracker), std::move(tree));
  }
  return error;
}

Error ChangedRows::copied(SnapshotHandle *snapshot) const {
  shale_snapshot *taken = nullptr;
  Error error = consume_error(shale_tracker_copied(tracker_.get(), &taken));
  snapshot->reset(taken);
  return error;
}

Error ChangedRows::begin_round(bool last, Round *round) const {
  if (Error error = copied(&round->before)) return error;
  shale_round *begun = nullptr;
  shale_snapshot *taken = nullptr;
  Error error = consume_error(shale_round_begin(tracker_.get(), !last, &begun, &taken));
  round->round.reset(begun);
  round->after.reset(taken);
  return error;
}

Error ChangedRows::end_round(Round *round) {
  round->before.reset();
  round->after.reset();
  return consume_error(shale_round_end(tracker_.get(), round->round.release()));
}

Error ChangedRows::wait(unsigned long millis) const {
  return consume_error(shale_tracker_wait(tracker_.get(), millis));
}

}  // namespace shale_sql
