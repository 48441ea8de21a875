// Entries of words of the rows that a statement inserts, until they are written in the order of
// their keys: by word, so that few keys are compared.
#pragma once

#include "codec/many_codec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shale_sql {

// Of one index.
class WordBuffer {
 public:
  // The entries of a row, whose keys end with its primary key. No row comes twice.
  void add(const ManyEntries &entries, std::string_view primary);
  // About how many bytes of memory it takes.
  size_t bytes() const { return bytes_; }
  // All entries, by ascending keys: `take(form, primary, value)` of each answers whether it goes
  // on. What it is given stays until there is another entry.
  template <class Take>
  void each(Take take) {
    for (const List *list : sorted()) {
      for (const Place &place : list->second) {
        if (!take(list->first, primaries_[place.row], value_of(place))) return;
      }
    }
  }
  void clear();

 private:
  struct Place {
    uint32_t row, value_at, value_bytes;
  };
  using Lists = std::unordered_map<std::string, std::vector<Place>>;
  using List = Lists::value_type;

  std::string_view value_of(const Place &place) const {
    return std::string_view(values_).substr(place.value_at, place.value_bytes);
  }
  std::vector<List *> sorted();

  Lists lists_;  // by the forms of words
  std::vector<std::string> primaries_;
  std::string values_;
  std::string form_;
  size_t bytes_ = 0;
  bool in_order_ = true;  // rows have come by ascending primary keys
};

}  // namespace shale_sql
