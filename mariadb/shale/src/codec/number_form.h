// Numbers as bytes that compare as they do: the highest byte first, with the sign turned.
//
// Integers come as the server's records have them, the lowest byte first, of 1 to 8 bytes.
#pragma once

#include "codec/bytes.h"

#include <cstring>

namespace shale_sql {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are read as little-endian words");

// Lengths that are frequent are told apart, since a copy of a length that is not known is a call.
inline uint64_t load_low_first(const uchar *from, unsigned n) {
  uint64_t word = 0;
  switch (n) {
    case 1: return from[0];
    case 2: memcpy(&word, from, 2); return word;
    case 4: memcpy(&word, from, 4); return word;
    case 8: memcpy(&word, from, 8); return word;
    default: memcpy(&word, from, n); return word;
  }
}

inline void store_low_first(uint64_t value, uchar *to, unsigned n) {
  switch (n) {
    case 1: *to = static_cast<uchar>(value); return;
    case 2: memcpy(to, &value, 2); return;
    case 4: memcpy(to, &value, 4); return;
    case 8: memcpy(to, &value, 8); return;
    default: memcpy(to, &value, n);
  }
}

// `turn` is xored to the value: the sign bit of a signed number, all bits in a descending part.
inline void append_integer(std::string *out, const uchar *from, unsigned n, uint64_t turn) {
  const uint64_t high_first = __builtin_bswap64((load_low_first(from, n) ^ turn) << (64 - 8 * n));
  out->append(reinterpret_cast<const char *>(&high_first), n);
}

inline void restore_integer(const uchar *key, uchar *to, unsigned n, uint64_t turn) {
  const uint64_t high_first = load_low_first(key, n);
  store_low_first((__builtin_bswap64(high_first) >> (64 - 8 * n)) ^ turn, to, n);
}

inline uint64_t sign_bit(unsigned n) { return uint64_t{1} << (8 * n - 1); }

// A FLOAT (n = 4) or DOUBLE (n = 8): of negative ones all bits are turned. -0 becomes 0, which it
// equals; a NaN cannot be in a column.
inline void append_real(std::string *out, const uchar *from, unsigned n, uint64_t turn) {
  const uint64_t sign = sign_bit(n);
  uint64_t bits = load_low_first(from, n);
  if (bits == sign) bits = 0;
  bits = (bits & sign) ? ~bits : bits ^ sign;
  bits ^= turn;
  const uint64_t high_first = __builtin_bswap64(bits << (64 - 8 * n));
  out->append(reinterpret_cast<const char *>(&high_first), n);
}

inline void restore_real(const uchar *key, uchar *to, unsigned n, uint64_t turn) {
  const uint64_t sign = sign_bit(n);
  uint64_t bits = (__builtin_bswap64(load_low_first(key, n)) >> (64 - 8 * n)) ^ turn;
  bits = (bits & sign) ? bits ^ sign : ~bits;
  store_low_first(bits, to, n);
}

inline bool is_negative_zero(const uchar *from, unsigned n) {
  return load_low_first(from, n) == sign_bit(n);
}

}  // namespace shale_sql
