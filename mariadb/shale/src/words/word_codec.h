// Entries of a FULLTEXT index: for each word of a row one.
//
// The key is the word's form and the row's primary key, so that the rows that have a word lie
// together, in the order of their primary keys. The value has where the word is in the row, in
// bytes: of the first place, then from each to the next, varints. Columns follow each other with
// one byte between them, without those that are NULL or empty. Where a parser plugin makes the
// words a place is the number of the word in the row.
#pragma once

#include "codec/many_codec.h"
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
  // The texts of the columns, in one, as positions count, and where each column begins.
  void text_of(const uchar *record, std::string *text, std::vector<size_t> *begins) const;

 private:
  struct Place {
    std::string form;
    size_t at;
  };
  void find_words(std::string_view column, size_t begin, std::vector<Place> *places) const;
  // `count`: of the words before this column, and becomes that of those after it.
  void parse_words(std::string_view column, size_t *count, std::vector<Place> *places) const;

  TABLE *table_;
  std::vector<Field *> fields_;
  WordForms forms_;
};

// The places of an entry's value; false: it is damaged.
bool read_places(std::string_view value, std::vector<uint64_t> *places);
// How many there are.
uint64_t count_places(std::string_view value);

}  // namespace shale_sql
