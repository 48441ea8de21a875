// The rules by which texts fall into words.

#include "words/tokens.h"

#include "server.h"

#include <algorithm>
#include <set>

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

// Whether words have the character at a place; `length`: its bytes, as the server tells them.
bool is_word_char(CHARSET_INFO *charset, const uchar *at, const uchar *end, int *length) {
  int type = 0;
  *length = charset->ctype(&type, at, end);
  return (type & (_MY_U | _MY_L | _MY_NMR)) != 0 || *at == '_';
}

}  // namespace

// A letter before an apostrophe at the end of a word leaves nothing of it.
bool Tokens::next(Token *token) {
  token->chars = 0;
  while (token->chars == 0 && at_ < text_.size()) pass(token);
  return token->chars != 0;
}

void Tokens::pass(Token *token) {
  const uchar *start = bytes_of(text_), *end = start + text_.size(), *at = start + at_;
  const auto is_word = [&](int *length) { return is_word_char(charset_, at, end, length); };
  // What ends beyond the text is damaged: it ends there.
  const auto step = [&](int length) {
    at += std::min(bytes_of_char(length), static_cast<size_t>(end - at));
  };
  int length = 0;
  while (at < end && !is_word(&length)) step(length);
  const uchar *word = at;
  size_t chars = 0;
  while (at < end) {
    if (is_word(&length)) {
      chars++;
      step(length);
    } else if (*at == '\'' && chars == 1) {
      step(length);
      word = at;
      chars = 0;
    } else {
      break;
    }
  }
  at_ = static_cast<size_t>(at - start);
  *token = {text_.substr(static_cast<size_t>(word - start), static_cast<size_t>(at - word)), chars};
}

size_t char_at(CHARSET_INFO *charset, std::string_view text, bool *is_word) {
  const uchar *at = bytes_of(text);
  int length = 0;
  *is_word = is_word_char(charset, at, at + text.size(), &length);
  return std::min(bytes_of_char(length), text.size());
}

size_t chars_of(CHARSET_INFO *charset, std::string_view text) {
  return charset->numchars(text.data(), text.data() + text.size());
}

WordForms::WordForms(CHARSET_INFO *charset, const WordRules &rules, st_mysql_ftparser *parser)
    : charset_(charset),
      rules_(rules),
      parser_(parser),
      collation_(charset, false),
      is_binary_((charset->state & MY_CS_BINSORT) != 0) {
  if (rules_.stopword_collation != 0) {
    stopword_charset_ = get_charset(rules_.stopword_collation, MYF(0));
  }
}

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

bool WordForms::form_of(const Token &token, std::string *form) const {
  if (!has_length(token)) return false;
  const std::string folded = fold(token.text);
  if (is_stopword({folded, token.chars})) return false;
  append(folded, form);
  return true;
}

bool WordForms::is_stopword(const Token &token) const {
  if (!rules_.stopwords) return false;
  if (rules_.stopword_collation != 0) {
    if (stopword_charset_ == nullptr) return false;
    const auto &words = rules_.own_stopwords;
    const auto before = [this](std::string_view a, std::string_view b) {
      return compare_stopwords(stopword_charset_, a, b) < 0;
    };
    return std::binary_search(words.begin(), words.end(), token.text, before);
  }
  if (token.text.size() > 8) return false;
  char small[8];
  std::transform(token.text.begin(), token.text.end(), small, [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return kStopwords.count({small, token.text.size()}) != 0;
}

int compare_stopwords(CHARSET_INFO *charset, std::string_view a, std::string_view b) {
  return charset->strnncollsp(a.data(), a.size(), b.data(), b.size());
}

}  // namespace shale_sql
