// Keys in words, for messages: the values of their columns as SQL prints them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct TABLE;

namespace shale_sql {

class KeyPart;

// How the keys of one index are read, without the table that it was learned from.
class KeyWords {
 public:
  // Of index `index`, or of the hidden primary key (MAX_KEY).
  KeyWords(TABLE *table, unsigned index);
  ~KeyWords();

  // `(1,'abc')`; `...` stands for what is missing of a key that was cut. `after`: the key is the
  // least one above those values.
  std::string of(std::string_view key, bool cut, bool *after) const;

 private:
  bool has_cell_ = false;  // before them: the key is of a SPATIAL index
  std::vector<KeyPart> parts_;
};

}  // namespace shale_sql
