// The rows that have a word, a beginning or a phrase, in the order of their primary keys.
#pragma once

#include "engine/cursor.h"
#include "engine/errors.h"
#include "words/word_query.h"
#include "words/word_reader.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// How many rows a search may keep: InnoDB's limit of bytes. One in a list takes some 100 bytes, one
// that was found 200 more.
constexpr size_t kMostRows = 2000000000 / 100;
constexpr size_t kFoundRow = 2;

class WordList {
 public:
  virtual ~WordList() = default;

  // To the next row; at first to the first.
  virtual Error next() = 0;
  // To the first row at or after a primary key, which is not before the one that it is at.
  virtual Error seek(std::string_view primary) = 0;
  bool at_end() const { return at_end_; }
  // The row that it is at.
  std::string_view primary() const { return primary_; }
  // How often the row has each of the words.
  const std::vector<uint64_t> &counts() const { return counts_; }
  // How many of the words that begin with a text the row has; else 1.
  uint64_t words() const { return words_; }
  // Of a single word: how many rows were passed; once it is at its end without a jump, all.
  uint64_t passed() const { return passed_; }
  bool is_whole() const { return whole_ && at_end_; }

 protected:
  bool at_end_ = false, whole_ = true;
  std::string_view primary_;
  std::vector<uint64_t> counts_;
  uint64_t words_ = 1, passed_ = 0;
};

// About how many rows have a word, at a small cost.
Error estimate_rows(const WordReader &reader, const std::string &form, uint64_t *rows);
// In how many rows words are. Few entries are counted, of more their number is estimated.
Error count_rows(const WordReader &reader, const std::string &form, uint64_t *rows);

class OneWord : public WordList {
 public:
  OneWord(const WordReader &reader, std::string form);

  Error next() override;
  Error seek(std::string_view primary) override;
  // Where the row has the word.
  bool places(std::vector<uint64_t> *places) const;

 private:
  Error begin();
  Error step(bool *found);
  Error take(bool found);
  Error pass_outdated(bool *found);

  const WordReader &reader_;
  const std::string form_;
  std::string key_;
  Cursor cursor_;
  std::string_view value_;  // of the entry that it is at
  bool begun_ = false;
};

// A word of a query of many: some rows are read at a time, and no scan stays open between.
class WordInParts : public WordList {
 public:
  // `form` outlives it. At most `most` rows are kept.
  WordInParts(const WordReader &reader, const std::string &form, size_t most);

  Error next() override;
  Error seek(std::string_view primary) override;

 private:
  struct Row {
    std::string primary;
    uint64_t count;
  };

  Error read(const std::string &from);
  void take();

  const WordReader &reader_;
  const std::string &form_;
  const size_t most_;
  size_t size_ = 0;  // of the next part
  std::vector<Row> part_;
  size_t at_ = 0;
  bool begun_ = false, ended_ = false;  // ended_: there is no part after this one
};

// Rows that were found before.
class FoundRows : public WordList {
 public:
  Error next() override;
  Error seek(std::string_view primary) override;

  struct Row {
    std::string primary;
    std::vector<uint64_t> counts;
    uint64_t words = 1;
  };
  std::vector<Row> rows;    // in their order
  size_t most = kMostRows;  // of them

 private:
  void take();

  size_t next_ = 0;
};

// Those with a word that begins with a text. `entries` becomes the number of words in rows.
Error find_beginning(const WordReader &reader, const std::string &folded, FoundRows *found,
                     uint64_t *entries);

// The words of a phrase: those to look up, and all from the first of them on.
struct PhraseWords {
  std::vector<std::string> indexed, all;  // forms
};
PhraseWords words_of_phrase(const WordForms &forms, const WordLeaf &phrase);
// Those with the words of a phrase side by side, or within `distance` words. `read`: how many of
// the words were looked up; none is after one that no row has.
Error find_phrase(const WordReader &reader, const PhraseWords &words, size_t distance,
                  FoundRows *found, size_t *read);

}  // namespace shale_sql
