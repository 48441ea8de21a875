// Which words begin with a text, where the forms of words do not tell.
#pragma once

#include "words/word_reader.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace shale_sql {

// Of the words whose forms begin with the text's prefix. In a collation of several levels that is
// by the first of them: then a word is looked for in its row, once for each form.
class Beginnings {
 public:
  Beginnings(const WordReader &reader, std::string_view folded)
      : reader_(reader), folded_(folded), is_rough_(reader.forms->has_rough_prefixes()) {}

  // `form` is in the row of this primary key.
  Error holds(std::string_view form, std::string_view primary, bool *does);

 private:
  bool begins(std::string_view word) const;

  const WordReader &reader_;
  const std::string_view folded_;
  const bool is_rough_;
  std::unordered_map<std::string, bool> known_;
  std::string text_;
  std::vector<size_t> columns_;
};

}  // namespace shale_sql
