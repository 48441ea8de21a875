// Rows of the past of a system-versioned table, told from the current ones by an entry of one of
// its indexes: as of InnoDB, they are nobody's parents or children.
#pragma once

#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/handles.h"

#include <string>
#include <string_view>

namespace shale_sql {

class PastRows {
 public:
  // Those that the index at `place` of the definition has entries of; `path` is for errors.
  static Error of(const std::string &path, const TableDef &def, size_t place, PastRows *made);

  // False: the table keeps none.
  bool any() const { return where_ != Where::kNowhere; }
  // Without reading a row.
  bool is_told_by_entries() const { return where_ == Where::kInEntry; }
  // Whether an entry is of one. A row that has to be read for that is locked shared.
  Error has(shale_txn *txn, std::string_view key, bool *is_past) const;
  // What follows `columns` columns of the key in the one entry that is current; empty: there may be
  // several of them, or other columns.
  std::string current_after(size_t columns) const;

 private:
  // Where it is written until when the row was current. A table without a primary key has
  // entries that say nothing of it.
  enum class Where { kNowhere, kInEntry, kInRow };

  Where where_ = Where::kNowhere;
  std::string path_;
  std::string current_;         // of kInEntry: of a current row, as entries have it
  std::vector<PartDef> parts_;  // before it in the entry; of kInRow all of the index
  bool is_last_ = false;        // no other column of the index is behind it
  TableDef def_;                // of kInRow
  TreeHandle rows_;
};

}  // namespace shale_sql
