// What a search has of its index and table.
#pragma once

#include "codec/many_codec.h"
#include "engine/cursor.h"
#include "engine/errors.h"
#include "words/tokens.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// How an index of words is read.
struct WordReader {
  const WordForms *forms = nullptr;
  const shale_tree *tree = nullptr;
  shale_txn *txn = nullptr;
  // Rows are locked when they are read: entries are read as they are by now, without locks.
  bool newest = false;
  // The entries of one row, whose primary key is `row`, instead of the tree: whether it matches.
  const ManyEntries *of_row = nullptr;
  std::string_view row;
  // The texts of a row: all in one, and where each of its columns begins; not `found`: there is no
  // such row any more.
  std::function<Error(std::string_view primary, std::string *text, std::vector<size_t> *begins,
                      bool *found)>
      text_of;
  std::function<bool()> is_killed;
  // Whether an entry is the snapshot's, and its row has been rewritten since; none: there are none.
  std::function<Error(std::string_view key, std::string_view primary, bool *outdated)> is_outdated;
};

}  // namespace shale_sql
