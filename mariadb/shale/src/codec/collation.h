// Strings of a collation as bytes that compare as the collation does.
#pragma once

#include "codec/text_form.h"

#include <string>

struct charset_info_st;

namespace shale_sql {

class Collation {
 public:
  // `fixed`: of CHAR columns, whose values are padded with spaces to one number of characters.
  Collation(const charset_info_st *charset, bool fixed);

  // Appends the form of a string. Of a CHAR column it comes with the spaces at its end.
  void append(const uchar *text, size_t n, std::string *out) const;
  // Whether spaces at the end make no difference, however many there are.
  bool strips() const { return strip_; }
  bool skip(Reader *key, uchar mask) const;
  // Appends what the forms of all strings begin with that begin with this one. Of a collation of
  // several levels, by the first of them: other forms may begin so, too.
  void append_beginning(const uchar *text, size_t n, std::string *out) const;
  bool has_levels() const { return level_count_ > 1 || all_levels_in_one_; }

  // Whether `restore` can be used: the form has the bytes of the string.
  bool restorable() const { return raw_; }
  // Gives back the string, without the spaces at its end if `loses_spaces`.
  bool restore(Reader *key, uchar mask, uchar *to, size_t room, size_t *n) const;
  bool loses_spaces() const { return levels_[0].padded; }

  // Appends what key_shape.h needs to pass over forms and to change them: the number of levels,
  // then of each whether it is padded, the size of its pad and the pad.
  void describe(std::string *out) const;
  // Whether the spaces at the end of a CHAR are in the form, so that this depends on its length.
  bool keeps_pads() const { return !strip_ && !levels_[0].padded; }

  // The longest form of a string of at most `n` bytes. Of the Unicode collations: if no character
  // has more weights than the collation declares.
  size_t max_bytes(size_t n) const;
  // Of `text`, the bytes that its first `chars` characters have.
  size_t prefix_bytes(const uchar *text, size_t n, size_t chars) const;

 private:
  struct Level {
    unsigned flags;  // that ask for the weights of this level alone
    bool padded;     // compares as if padded with spaces
    Pad pad;
  };

  void append_level(const Level &level, const uchar *text, size_t n, std::string *out) const;
  size_t weights(unsigned flags, const uchar *text, size_t n, class Weights *to) const;
  void set_levels(bool fixed);

  const charset_info_st *charset_;
  bool raw_ = false;          // the bytes of the string are its weights
  bool strip_ = false;        // spaces at the end say nothing: cheaper to take them off first
  bool by_code_ = false;       // the server's weights are not what it compares by
  bool ends_at_zero_ = false;  // compared as strings of C are
  bool all_levels_in_one_ = false;
  unsigned level_count_ = 1;
  Level levels_[6];
};

}  // namespace shale_sql
