// Entries of words of the rows that a statement inserts, until they are written in the order of
// their keys: by word, so that few keys are compared. A text's words are mostly known from rows
// before it, so what a word's form is gets looked up by its letters.
#pragma once

#include "words/tokens.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shale_sql {

class WordCodec;

// Of one index.
class WordBuffer {
 public:
  // The words of a row of the codec's table. No row comes twice.
  void add(const WordCodec &codec, const uchar *record, std::string_view primary);
  // About how many bytes of memory it takes.
  size_t bytes() const { return bytes_ + word_bytes_; }
  // All entries, by ascending keys: `take(form, primary, value)` of each answers whether it goes
  // on. What it is given stays until there is another entry.
  template <class Take>
  void each(Take take) {
    const std::vector<uint32_t> order = sorted();
    for (const uint32_t place : order) {
      const Entry &entry = entries_[place];
      if (!take(*words_[entry.word].form, primaries_[entry.row], value_of(place))) return;
    }
  }
  // Words stay known unless they take most of the memory.
  void clear();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Word {
    const std::string *form;
    uint32_t entries = 0;
    // Its places in the row that is read, in `places_`.
    uint32_t first = kNone, last = kNone;
  };
  // Values follow each other as entries do.
  struct Entry {
    uint32_t word, row, value_at;
  };
  struct Place {
    uint64_t at;
    uint32_t next;  // of the same word
  };

  uint32_t find_word(const WordForms &forms, const Token &token);
  void end_row();
  std::string_view value_of(uint32_t place) const;
  std::vector<uint32_t> sorted() const;

  std::unordered_map<std::string, uint32_t> known_;  // texts; kNone: it goes into no index
  std::unordered_map<std::string, uint32_t> forms_;
  std::vector<Word> words_;
  std::vector<Entry> entries_;
  std::vector<std::string> primaries_;
  std::string values_;
  std::vector<Place> places_;   // of the row that is read
  std::vector<uint32_t> found_;  // its words
  std::string text_;
  size_t bytes_ = 0, word_bytes_ = 0;  // of entries, of words
  bool in_order_ = true;  // rows have come by ascending primary keys
};

}  // namespace shale_sql
