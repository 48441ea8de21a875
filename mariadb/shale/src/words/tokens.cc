// The rules by which texts fall into words.

#include "words/tokens.h"

#include "server.h"

#include <algorithm>

namespace shale_sql {

namespace {

// InnoDB's, which it compares by latin1_swedish_ci.
const std::set<std::string_view> kStopwords = {
    "a",    "about", "an",   "are",  "as",   "at",   "be",    "by",   "com", "de",   "en",  "for",
    "from", "how",   "i",    "in",   "is",   "it",   "la",    "of",   "on",  "or",   "that", "the",
    "this", "to",    "was",  "what", "when", "where", "who",  "will", "with", "und", "www"};

size_t bytes_of_char(int length) {
  return length > 0 ? static_cast<size_t>(length) : length < 0 ? static_cast<size_t>(-length) : 1;
}

}  // namespace

Token next_token(CHARSET_INFO *charset, std::string_view text, size_t *passed) {
  const uchar *start = bytes_of(text), *end = start + text.size(), *at = start;
  const auto is_word = [&](int *length) {
    int type = 0;
    *length = charset->ctype(&type, at, end);
    return (type & (_MY_U | _MY_L | _MY_NMR)) != 0 || *at == '_';
  };
  // What ends beyond the text is damaged: it ends there.
  const auto pass = [&](int length) {
    at += std::min(bytes_of_char(length), static_cast<size_t>(end - at));
  };
  int length = 0;
  while (at < end && !is_word(&length)) pass(length);
  const uchar *word = at;
  size_t chars = 0;
  while (at < end) {
    if (is_word(&length)) {
      chars++;
      pass(length);
    } else if (*at == '\'' && chars == 1) {
      pass(length);
      word = at;
      chars = 0;
    } else {
      break;
    }
  }
  *passed = static_cast<size_t>(at - start);
  return {text.substr(static_cast<size_t>(word - start), static_cast<size_t>(at - word)), chars};
}

WordForms::WordForms(CHARSET_INFO *charset, const WordRules &rules)
    : charset_(charset),
      rules_(rules),
      collation_(charset, false),
      is_binary_((charset->state & MY_CS_BINSORT) != 0) {}

std::string WordForms::fold(std::string_view text) const {
  if (is_binary_ || text.empty()) return std::string(text);
  std::string small(text.size() * charset_->casedn_multiply() + 1, '\0');
  small.resize(charset_->casedn(text.data(), text.size(), &small[0], small.size()));
  return small;
}

void WordForms::append(std::string_view folded, std::string *form) const {
  collation_.append(bytes_of(folded), folded.size(), form);
}

std::string WordForms::prefix_of(std::string_view folded) const {
  std::string form;
  collation_.append_beginning(bytes_of(folded), folded.size(), &form);
  return form;
}

bool WordForms::is_stopword(const Token &token) const {
  if (!rules_.stopwords || token.text.size() > 8) return false;
  char small[8];
  std::transform(token.text.begin(), token.text.end(), small, [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return kStopwords.count({small, token.text.size()}) != 0;
}

}  // namespace shale_sql
