// Words of texts, as InnoDB takes them from documents and queries: rows of letters, digits and
// underscores. A single letter before an apostrophe is left off.
#pragma once

#include "codec/bytes.h"
#include "codec/collation.h"
#include "codec/table_def.h"

#include <string>
#include <string_view>

struct charset_info_st;
struct st_mysql_ftparser;

namespace shale_sql {

struct Token {
  std::string_view text;  // within what is read
  size_t chars = 0;
};

// The words of a text, one after the other.
class Tokens {
 public:
  Tokens(const charset_info_st *charset, std::string_view text) : charset_(charset), text_(text) {}

  // False: there is no other.
  bool next(Token *token);
  // Where in the text a word of it begins.
  size_t place_of(const Token &token) const {
    return static_cast<size_t>(token.text.data() - text_.data());
  }

 private:
  void pass(Token *token);

  const charset_info_st *const charset_;
  const std::string_view text_;
  size_t at_ = 0;
};

// How many bytes the first character of a text has, which is not empty, and whether words have it.
size_t char_at(const charset_info_st *charset, std::string_view text, bool *is_word);

size_t chars_of(const charset_info_st *charset, std::string_view text);

// Words of one collation, as they are in keys: two are the same word if their forms are equal.
class WordForms {
 public:
  WordForms(const charset_info_st *charset, const WordRules &rules,
            st_mysql_ftparser *parser = nullptr);

  // Small letters, unless the collation is binary.
  std::string fold(std::string_view text) const;
  // The form of a word that is folded already.
  void append(std::string_view folded, std::string *form) const;
  // What the forms of all words that begin with a word begin with.
  std::string prefix_of(std::string_view folded) const;
  // Whether others may begin so, too.
  bool has_rough_prefixes() const { return collation_.has_levels(); }
  // The form of a token as it is in a text; false: it goes into no index.
  bool form_of(const Token &token, std::string *form) const;
  // Passes over a form.
  bool skip(Reader *key) const { return collation_.skip(key, 0); }

  // Whether a token goes into the index; its text is folded.
  bool is_indexed(const Token &token) const { return has_length(token) && !is_stopword(token); }
  bool has_length(const Token &token) const {
    return token.chars >= rules_.min_chars && token.chars <= rules_.max_chars;
  }
  bool is_stopword(const Token &token) const;

  const WordRules &rules() const { return rules_; }
  const charset_info_st *charset() const { return charset_; }
  // The plugin that makes the words; nullptr: the engine does.
  st_mysql_ftparser *parser() const { return parser_; }

 private:
  const charset_info_st *charset_;
  const WordRules rules_;
  st_mysql_ftparser *const parser_;
  const Collation collation_;
  bool is_binary_;
  const charset_info_st *stopword_charset_ = nullptr;  // of a list that is not the engine's
};

// Their order in a list.
int compare_stopwords(const charset_info_st *charset, std::string_view a, std::string_view b);

}  // namespace shale_sql
