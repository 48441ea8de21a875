// Fills the new trees of a table that is altered in place.
#pragma once

#include "server.h"

#include "engine/changed_rows.h"
#include "engine/errors.h"
#include "engine/handles.h"
#include "engine/index_build.h"
#include "load/altered_entries.h"
#include "load/loader.h"
#include "load/pace.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

struct NewIndex {
  unsigned number;   // in the altered table's definition; MAX_KEY: the hidden primary key
  std::string name;  // of its tree
  // One of the two: a tree beneath what writers write to it meanwhile, or one that nobody else
  // writes to.
  std::shared_ptr<IndexBuild> build;
  TreeHandle tree;
};

// Reads the rows of a table as the altered table has them: all of one snapshot, then in rounds
// those that others have changed meanwhile.
class IndexFiller {
 public:
  // Of rows in `source`, the tree of a table with these `counts`. `changed` is nullptr if there are
  // no rounds: nobody writes, or writers write to the trees themselves.
  IndexFiller(const Alteration &alteration, const shale_tree *source, const TableCounts &counts,
              std::vector<NewIndex> *indexes, std::shared_ptr<ChangedRows> changed);

  // `expected` rows, for the progress that is told. Little is left to do then.
  Error run(ha_rows expected);
  // The same again of several, whose tables were written to meanwhile.
  static Error catch_up(const std::vector<IndexFiller *> &all);
  // What is left, while nobody writes.
  Error finish();
  bool has_rounds() const { return changed_ != nullptr; }
  const shale_tree *source() const { return source_; }
  // The index that has two entries of one key; nullptr: none. Its row is in the record.
  const NewIndex *duplicate() const { return duplicate_; }
  // The tree epoch that began when the rows had been seen.
  uint64_t seen_from() const { return seen_from_; }

 private:
  using Entries = std::vector<AlteredEntry>;

  Error take_snapshot();
  Error scan(ha_rows expected);
  Error load();
  Error show_duplicate(size_t place);
  Error round(bool last, uint64_t *keys);
  Error pass(const ChangedRows::Round &round, bool erases, bool writes, uint64_t *keys);
  Error entries_at(const shale_snapshot *at, std::string_view key, bool comes, bool *found,
                   Entries *entries);
  Error erase(size_t place, const std::string &key);
  Error put(size_t place, const AlteredEntry &entry, bool looks);
  Error put(size_t place, std::string_view key, std::string_view value);
  Error change_many(size_t place, bool was, bool is, bool erases, bool writes);
  Error write();

  const Alteration alter_;
  const shale_tree *source_;
  std::vector<NewIndex> &indexes_;
  const std::shared_ptr<ChangedRows> changed_;
  AlteredEntries rows_;
  Pace pace_;
  std::vector<TreeLoader> loaders_;
  const NewIndex *duplicate_ = nullptr;
  uint64_t seen_from_ = 0;
  SnapshotHandle snapshot_;  // of the scan, until its rows are in the trees
  BytesHandle row_;          // what the record may point into

  // Of a round: what was before and after, and what is not written yet.
  Entries was_, is_;
  BatchHandle batch_;
  size_t operations_ = 0;
  std::set<std::pair<size_t, std::string>> pending_;  // unique keys
};

}  // namespace shale_sql
