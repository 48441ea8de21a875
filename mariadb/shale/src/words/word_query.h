// Queries of MATCH ... AGAINST, read as InnoDB reads them, and turned into steps that say of each
// row whether it matches.
#pragma once

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

// What is looked up.
struct WordLeaf {
  enum class Kind : uint8_t { kWord, kBeginning, kPhrase };
  static constexpr size_t kExactly = ~size_t{0};

  Kind kind = Kind::kWord;
  std::string text;            // folded; of a phrase without its quotes
  size_t distance = kExactly;  // of a phrase: its words are within so many words
  // Whether InnoDB reads its list, so that its rows count for ranks: nothing is taken out of an
  // empty set.
  bool is_read = true;
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

  // Whether no row matches that does not have the leaf.
  bool requires_leaf(size_t leaf) const;
};

enum class WordSyntax {
  kGood,
  kBad,
  kTooDeep,  // more groups in each other than are read
};

// `boolean`: IN BOOLEAN MODE.
WordSyntax parse_words(const WordForms &forms, std::string_view text, bool boolean,
                       WordQuery *query);

}  // namespace shale_sql
