// One scan of the table at one snapshot, whose rows give the entries of all new trees. Then rounds:
// each row that was changed since is looked at as it was and as it is.

#include "load/index_filler.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "tables/shared_table.h"

namespace shale_sql {

namespace {

// Rows between two looks at whether the statement was killed.
constexpr uint64_t kAsk = 256;
// How many operations a batch of a round has: writers wait while it is applied.
constexpr size_t kBatch = 200;
// Rounds end when so few rows were left, whose look takes milliseconds with writers held off.
constexpr uint64_t kFew = 500;
// Or when there have been so many: writers are faster than this.
constexpr unsigned kRounds = 100;

Error get(const shale_tree *tree, const shale_snapshot *at, std::string_view key,
          BytesHandle *value) {
  shale_bytes *found = nullptr;
  Error error = consume_error(shale_get(tree, at, key.data(), key.size(), &found));
  value->reset(found);
  return error;
}

}  // namespace

IndexFiller::IndexFiller(const Alteration &alteration, const shale_tree *source,
                         const TableCounts &counts, std::vector<NewIndex> *indexes,
                         std::shared_ptr<ChangedRows> changed)
    : alter_(alteration),
      source_(source),
      indexes_(*indexes),
      changed_(std::move(changed)),
      rows_(alteration),
      pace_(alteration.thd, counts) {
  size_t memory = sort_memory_of_each(alter_.thd, indexes_.size());
  for (size_t place = 0; place < indexes_.size(); place++) {
    const NewIndex &index = indexes_[place];
    if (index.build != nullptr) {
      loaders_.emplace_back(index.build.get(), memory);
    } else {
      loaders_.emplace_back(index.tree.get(), alter_.rebuilds && place == 0, memory);
    }
  }
}

Error IndexFiller::take_snapshot() {
  if (changed_ != nullptr) {
    snapshot_ = changed_->first();
    return 0;
  }
  shale_snapshot *now = nullptr;
  Error error = consume_error(shale_snapshot_new(engine().db, &now, nullptr));
  snapshot_.reset(now);
  return error;
}

Error IndexFiller::scan(ha_rows expected) {
  Error error = take_snapshot();
  if (error) return error;
  seen_from_ = SharedTable::next_tree_epoch();
  shale_scan *begun = nullptr;
  error = consume_error(
      shale_scan_new(source_, snapshot_.get(), nullptr, 0, nullptr, 0, false, &begun));
  ScanHandle scan(begun);
  if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
  THD *thd = alter_.thd;
  // Of a rebuild warnings tell the row, as those of a copy do, counted through all partitions; of
  // an index none do, as InnoDB's.
  if (alter_.rebuilds && thd->get_stmt_da()->current_row_for_warning() == 0) {
    thd->get_stmt_da()->reset_current_row_for_warning(1);
  }
  for (uint64_t count = 1; !error && at_row(begun); count++) {
    if (count % kAsk == 0) {
      if (pace_.rest()) return HA_ERR_ABORTED_BY_USER;
      thd_progress_report(thd, count, std::max<ha_rows>(expected, count));
    }
    size_t key_len = 0, value_len = 0;
    const char *key = static_cast<const char *>(shale_scan_key(begun, &key_len));
    const void *value = nullptr;
    if ((error = consume_error(shale_scan_value(begun, &value, &value_len)))) break;
    error = rows_.of_row({key, key_len}, {static_cast<const char *>(value), value_len}, true, &is_);
    for (size_t place = 0; !error && place < is_.size(); place++) {
      if (rows_.has_many(place)) {
        for (const ManyEntry &entry : is_[place].many) {
          if (!error) error = loaders_[place].add(entry.key, entry.value);
        }
        continue;
      }
      error = loaders_[place].add(is_[place].key, is_[place].value);
      if (error == HA_ERR_FOUND_DUPP_KEY) duplicate_ = &indexes_[place];
    }
    if (!error) error = consume_error(move_scan(begun, SHALE_NEXT));
    if (alter_.rebuilds) thd->get_stmt_da()->inc_current_row_for_warning();
  }
  return error;
}

// Puts the row that is one too many into the record, for the error's text.
Error IndexFiller::show_duplicate(size_t place) {
  const TreeLoader &loader = loaders_[place];
  duplicate_ = &indexes_[place];
  if (alter_.rebuilds && place == 0) return rows_.show(loader.key(), loader.value());
  std::string_view primary;
  if (!rows_.primary_of(place, loader.key(), loader.value(), &primary)) return 0;
  const bool rebuilds = alter_.rebuilds;
  Error error = rebuilds ? get(indexes_[0].tree.get(), nullptr, primary, &row_)
                         : get(source_, snapshot_.get(), primary, &row_);
  if (error || row_ == nullptr) return error;
  if (rebuilds) return rows_.show(primary, view_of(row_));
  return rows_.of_row(primary, view_of(row_), false, &is_);
}

Error IndexFiller::load() {
  for (size_t place = 0; place < loaders_.size(); place++) {
    thd_progress_next_stage(alter_.thd);
    Error error = loaders_[place].finish(alter_.thd, &pace_);
    if (error == HA_ERR_FOUND_DUPP_KEY) {
      if (Error other = show_duplicate(place)) return other;
    }
    if (error) return error;
  }
  return 0;
}

Error IndexFiller::run(ha_rows expected) {
  if (Error error = rows_.check()) return error;
  const bool has_rounds = changed_ != nullptr;
  thd_progress_init(alter_.thd, static_cast<uint>(1 + loaders_.size() + (has_rounds ? 1 : 0)));
  Error error = scan(expected);
  if (!error) error = load();
  snapshot_.reset();
  if (!error && has_rounds) {
    thd_progress_next_stage(alter_.thd);
    error = catch_up({this});
  }
  thd_progress_end(alter_.thd);
  return error;
}

Error IndexFiller::catch_up(const std::vector<IndexFiller *> &all) {
  Error error;
  uint64_t left = kFew;
  for (unsigned count = 0; !error && left >= kFew && count < kRounds; count++) {
    left = 0;
    for (IndexFiller *one : all) {
      uint64_t keys = 0;
      if (!error) error = one->round(false, &keys);
      left += keys;
    }
  }
  return error;
}

Error IndexFiller::finish() {
  uint64_t keys = 0;
  return changed_ == nullptr ? 0 : round(true, &keys);
}

// Entries that go make room for those that come: where these may be in each other's way, all that
// goes does so first.
Error IndexFiller::round(bool last, uint64_t *keys) {
  ChangedRows::Round round;
  if (Error error = changed_->begin_round(last, &round)) return error;
  shale_batch *begun = nullptr;
  if (Error error = consume_error(shale_batch_new(&begun))) return error;
  batch_.reset(begun);
  Error error;
  if (rows_.has_unique()) {
    error = pass(round, true, false, keys);
    if (!error) error = write();
    if (!error) error = pass(round, false, true, keys);
  } else {
    error = pass(round, true, true, keys);
  }
  if (!error) error = write();
  return error ? std::move(error) : changed_->end_round(&round);
}

Error IndexFiller::pass(const ChangedRows::Round &round, bool erases, bool writes,
                        uint64_t *keys) {
  *keys = 0;
  return each_key(round, [&](std::string_view key) -> Error {
    if (++*keys % kAsk == 0 && thd_killed(alter_.thd)) return HA_ERR_ABORTED_BY_USER;
    bool was = false, is = false;
    if (Error error = entries_at(round.before.get(), key, false, &was, &was_)) return error;
    // The record has what comes, for an error's text.
    if (Error error = entries_at(round.after.get(), key, writes, &is, &is_)) return error;
    for (size_t place = 0; place < indexes_.size(); place++) {
      if (rows_.has_many(place)) {
        if (Error error = change_many(place, was, is, erases, writes)) return error;
        continue;
      }
      const bool stays = was && is && was_[place].key == is_[place].key;
      if (erases && was && !stays) {
        if (Error error = erase(place, was_[place].key)) return error;
      }
      if (!writes || !is || (stays && was_[place].value == is_[place].value)) continue;
      if (Error error = put(place, is_[place], !stays && is_[place].is_unique)) return error;
    }
    return operations_ >= kBatch ? write() : Error();
  });
}

Error IndexFiller::entries_at(const shale_snapshot *at, std::string_view key, bool comes,
                              bool *found, Entries *entries) {
  if (Error error = get(source_, at, key, &row_)) return error;
  *found = row_ != nullptr;
  if (!*found) return 0;
  if (Error error = rows_.of_row(key, view_of(row_), comes, entries)) return error;
  // A row of the past may be left out.
  *found = !entries->empty();
  return 0;
}

// No two rows have an entry of one key, so it matters not which goes first.
Error IndexFiller::change_many(size_t place, bool was, bool is, bool erases, bool writes) {
  static const ManyEntries kNone;
  Error error;
  compare_entries(
      was ? was_[place].many : kNone, is ? is_[place].many : kNone,
      [&](const std::string &key) {
        if (erases && !error) error = erase(place, key);
      },
      [&](const ManyEntry &entry) {
        if (writes && !error) error = put(place, entry.key, entry.value);
      },
      [](const ManyEntry &) {});
  return error;
}

Error IndexFiller::erase(size_t place, const std::string &key) {
  operations_++;
  return consume_error(shale_batch_delete(batch_.get(), indexes_[place].tree.get(), key.data(),
                                          key.size(), nullptr, 0));
}

Error IndexFiller::put(size_t place, const AlteredEntry &entry, bool looks) {
  const shale_tree *tree = indexes_[place].tree.get();
  if (looks) {
    BytesHandle there;
    if (Error error = get(tree, nullptr, entry.key, &there)) return error;
    if (there != nullptr || !pending_.insert({place, entry.key}).second) {
      duplicate_ = &indexes_[place];
      return HA_ERR_FOUND_DUPP_KEY;
    }
  }
  return put(place, entry.key, entry.value);
}

Error IndexFiller::put(size_t place, std::string_view key, std::string_view value) {
  operations_++;
  return consume_error(shale_batch_put(batch_.get(), indexes_[place].tree.get(), key.data(),
                                       key.size(), value.data(), value.size()));
}

Error IndexFiller::write() {
  Error error;
  if (operations_ != 0) error = consume_error(shale_write(engine().db, batch_.get(), false));
  shale_batch_clear(batch_.get());
  operations_ = 0;
  pending_.clear();
  return error;
}

}  // namespace shale_sql
