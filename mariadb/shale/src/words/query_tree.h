// A query of words as it was read, before its parts are put in the order in which they are looked
// at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shale_sql {

enum class WordSyntax {
  kGood,
  kBad,
  kTooDeep,  // more groups in each other than are read
};

// What is looked up.
struct WordLeaf {
  enum class Kind : uint8_t { kWord, kBeginning, kPhrase };
  static constexpr size_t kExactly = ~size_t{0};

  Kind kind = Kind::kWord;
  std::string text;            // folded; of a phrase without its quotes
  size_t distance = kExactly;  // of a phrase: its words are within so many words
  // Of a phrase that a parser plugin has read: its words, instead of the text.
  bool is_parsed = false;
  std::vector<std::string> words;
};

// Operators as they stand in a list. Those of + and - are first passed over, and looked at after
// the others of their list.
enum class Mark : uint8_t {
  kNone, kExist, kIgnore, kNegate, kDecrease, kIncrease, kExistLater, kIgnoreLater
};

struct QueryNode {
  enum class Type : uint8_t { kMark, kLeaf, kList, kGroup };

  explicit QueryNode(Type type) : type(type) {}

  Type type;
  Mark mark = Mark::kNone;
  WordLeaf leaf;
  bool visited = false;
  std::vector<std::unique_ptr<QueryNode>> parts;

  void add(std::unique_ptr<QueryNode> part) {
    if (part != nullptr) parts.push_back(std::move(part));
  }
};

using QueryNodePtr = std::unique_ptr<QueryNode>;

inline QueryNodePtr list_of(QueryNodePtr first) {
  auto list = std::make_unique<QueryNode>(QueryNode::Type::kList);
  list->add(std::move(first));
  return list;
}

// How deep groups may be in each other.
constexpr unsigned kDeepestGroup = 32;
// How many groups there may be: each is a level of the tree.
constexpr unsigned kMostGroups = 200;

}  // namespace shale_sql
