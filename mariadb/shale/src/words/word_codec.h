// Entries of a FULLTEXT index: for each word of a row one.
//
// The key is the word's form and the row's primary key, so that the rows that have a word lie
// together, in the order of their primary keys. The value has where the word is in the row, in
// bytes: of the first place, then from each to the next, varints. Columns follow each other with
// one byte between them, without those that are NULL or empty. Where a parser plugin makes the
// words a place is the number of the word in the row.
#pragma once

#include "codec/many_codec.h"
#include "words/parser_plugin.h"
#include "words/tokens.h"

#include <string>
#include <string_view>
#include <vector>

struct TABLE;
struct st_key;
class Field;

namespace shale_sql {

class WordCodec : public ManyCodec {
 public:
  // Fields are those of `table`.
  WordCodec(TABLE *table, const st_key &key, const WordRules &rules);

  void pack(const uchar *record, std::string_view primary, ManyEntries *out) const override;
  bool primary_of(std::string_view key, std::string_view value,
                  std::string_view *primary) const override;

  const WordForms &forms() const { return forms_; }
  // `take(token, place)` of all that stands between others, also what is in no index, in the order
  // of its places.
  template <class Take>
  void each_token(const uchar *record, Take take) const {
    std::string text;
    std::vector<size_t> begins;
    text_of(record, &text, &begins);
    size_t words = 0;
    for (size_t column = 0; column < begins.size(); column++) {
      const size_t end = column + 1 < begins.size() ? begins[column + 1] - 1 : text.size();
      const std::string_view part(text.data() + begins[column], end - begins[column]);
      if (forms_.parser() != nullptr) {
        for (const ParsedWord &word : parse_document(forms_, part, false)) {
          take(Token{word.text, word.chars}, words++);
        }
        continue;
      }
      Tokens tokens(forms_.charset(), part);
      for (Token token; tokens.next(&token);) take(token, begins[column] + tokens.place_of(token));
    }
  }
  // The texts of the columns, in one, as positions count, and where each column begins.
  void text_of(const uchar *record, std::string *text, std::vector<size_t> *begins) const;

 private:
  TABLE *table_;
  std::vector<Field *> fields_;
  WordForms forms_;
};

// The places of an entry's value; false: it is damaged.
bool read_places(std::string_view value, std::vector<uint64_t> *places);
// How many there are.
uint64_t count_places(std::string_view value);

}  // namespace shale_sql
