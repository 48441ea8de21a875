// Texts in keys, by what a definition says of their form: without the server's collations.
#pragma once

#include "codec/text_form.h"

#include <string>
#include <string_view>

namespace shale_sql {

// How the texts of one part are in keys (FormClass::kText and kBinary).
class TextShape {
 public:
  // Of a part's form; false: it is damaged.
  bool parse(std::string_view form);

  // Passes over a text; `mask` is 0xff where its bits are turned, else 0. False: it does not end.
  bool skip(Reader *key, uchar mask) const;

  enum class Changed { kText, kNoMatch, kDamaged };
  // Appends a text of this shape as one of the other, of the same collation. A CHAR equals the
  // VARCHAR that is its value without the spaces at its end, also where these are compared (NO
  // PAD). The Unicode collations of this kind have a CHAR's spaces in their keys: there both are
  // equal only if the VARCHAR has these spaces too, and never if the collation has several levels.
  Changed change(std::string_view text, uchar mask, const TextShape &to, uchar to_mask,
                 std::string *out) const;

 private:
  struct Level {
    bool padded;
    Pad pad;
  };
  static constexpr unsigned kMostLevels = 8;

  bool same_levels(const TextShape &other) const;
  Changed change_level(unsigned level, Reader *text, uchar mask, const TextShape &to,
                       std::string *out) const;

  uint64_t collation_ = 0;
  uint64_t chars_ = 0;  // of a CHAR whose spaces are in its keys, else 0
  unsigned level_count_ = 0;
  Level levels_[kMostLevels];
};

}  // namespace shale_sql
