// A word is compared with a text by looking for it in a row that has it.

#include "words/beginnings.h"

#include "server.h"

#include "words/parser_plugin.h"

namespace shale_sql {

// As InnoDB compares them: a word no further than the text goes.
bool Beginnings::begins(std::string_view word) const {
  const charset_info_st *charset = reader_.forms->charset();
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<const uchar *>(text.data());
  };
  return charset->coll->strnncoll(charset, bytes(word), word.size(), bytes(folded_),
                                  folded_.size(), true) == 0;
}

Error Beginnings::holds(std::string_view form, std::string_view primary, bool *does) {
  *does = true;
  if (!is_rough_) return 0;
  const auto [place, is_new] = known_.emplace(form, false);
  *does = place->second;
  if (!is_new) return 0;
  const WordForms &forms = *reader_.forms;
  bool is_there = false;
  Error error = reader_.text_of(primary, &text_, &columns_, &is_there);
  bool found = false;
  const auto look = [&](std::string_view word) {
    const std::string folded = forms.fold(word);
    std::string of_word;
    forms.append(folded, &of_word);
    if (of_word != form) return;
    found = true;
    place->second = begins(folded);
  };
  if (!error && is_there && forms.parser() != nullptr) {
    for (const ParsedWord &word : parse_document(forms, text_, false)) look(word.text);
  } else if (!error && is_there) {
    Tokens tokens(forms.charset(), text_);
    for (Token token; !found && tokens.next(&token);) look(token.text);
  }
  *does = place->second;
  // The row may have changed: the next one with the word tells.
  if (!found) known_.erase(place);
  return error;
}

}  // namespace shale_sql
