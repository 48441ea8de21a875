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

// How many rows a search may find: they take some 150 bytes each. InnoDB's limit is as many bytes.
constexpr size_t kMostRows = 2000000000 / 150;

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
  // Where the row has the word; of a single word.
  virtual bool places(std::vector<uint64_t> *) const { return false; }

 protected:
  bool at_end_ = false;
  std::string_view primary_;
  std::vector<uint64_t> counts_;
  uint64_t words_ = 1;
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
  bool places(std::vector<uint64_t> *places) const override;
  // How many rows it has passed; all there are, once it is at its end without a seek.
  uint64_t passed() const { return passed_; }
  bool is_whole() const { return whole_ && at_end_; }
  const std::string &form() const { return form_; }

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
  bool begun_ = false, whole_ = true;
  uint64_t passed_ = 0;
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
  std::vector<Row> rows;  // in their order

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
