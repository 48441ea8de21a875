// Queries of MATCH ... AGAINST, read as InnoDB reads them, and turned into steps that say of each
// row whether it matches.
#pragma once

#include "words/query_tree.h"
#include "words/tokens.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// What a word or a group is preceded by.
enum class WordOper : uint8_t {
  kNone,      // it may be there
  kExist,     // +
  kIgnore,    // -
  kNegate,    // ~
  kDecrease,  // <
  kIncrease,  // >
};

// The rows that match are a set that each step changes. A group has a set of its own, which is
// joined with that around it.
struct WordStep {
  enum class What : uint8_t { kLeaf, kBegin, kEnd };

  What what = What::kLeaf;
  WordOper oper = WordOper::kNone;  // of a leaf, or of the end of a group
  size_t leaf = 0;
  // Of kExist: an earlier step was one too, so that rows have to be in the set already.
  bool narrows = false;
};

struct WordQuery {
  std::vector<WordLeaf> leaves;
  std::vector<WordStep> steps;

  // Of each leaf: whether no row matches that does not have it.
  std::vector<bool> required_leaves() const;
};

// `boolean`: IN BOOLEAN MODE.
WordSyntax parse_words(const WordForms &forms, std::string_view text, bool boolean,
                       WordQuery *query);

}  // namespace shale_sql
