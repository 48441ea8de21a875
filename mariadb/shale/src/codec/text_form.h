// Strings of any length as bytes of which none is the beginning of another.
//
// The plain form compares as the strings do, a beginning before what it begins (NO PAD): a byte 0
// becomes 0 1, the end is 0 0.
//
// The padded form compares as if both strings went on in pads without end (PAD SPACE). A pad is
// one unit (the weight of a space), a string a number of units; the pads at its end are not in the
// form. A unit above or below the pad stands for itself. Pads, and the end, must sort between
// those, by what comes after them: so a pad is followed by a byte that says whether the first unit
// after this row of pads is below (1) or above (3) it, and the end is a pad followed by 2.
#pragma once

#include "codec/bytes.h"

namespace shale_sql {

// A unit of at most 4 bytes.
struct Pad {
  uchar bytes[4];
  unsigned size;
};

void append_plain(std::string *out, const uchar *from, size_t n);
// `n` is a multiple of the pad's size.
void append_padded(std::string *out, const uchar *from, size_t n, const Pad &pad);

// Pass over one form; `mask` is 0xff where its bits are turned, else 0. False: it does not end.
bool skip_plain(Reader *key, uchar mask);
bool skip_padded(Reader *key, uchar mask, const Pad &pad);

// Give the string back, of a padded form (whose pad is one byte) without the pads at its end.
// False: the form is damaged or the string is longer than `room`.
bool restore_plain(Reader *key, uchar mask, uchar *to, size_t room, size_t *n);
bool restore_padded(Reader *key, uchar mask, uchar pad, uchar *to, size_t room, size_t *n);

// Gives back the units of a padded form, without the pads at its end. False: it is damaged.
bool restore_units(Reader *key, uchar mask, const Pad &pad, std::string *units);

// The longest forms of `n` bytes.
inline size_t max_plain(size_t n) { return 2 * n + 2; }
inline size_t max_padded(size_t n, const Pad &pad) {
  return (n + pad.size - 1) / pad.size * (pad.size + 1) + pad.size + 1;
}

}  // namespace shale_sql
