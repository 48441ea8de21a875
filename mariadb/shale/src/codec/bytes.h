// Bytes out of keys and values, with bounds: what is stored may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shale_sql {

typedef unsigned char uchar;

inline const uchar *bytes_of(std::string_view text) {
  return reinterpret_cast<const uchar *>(text.data());
}

inline void append_bytes(std::string *out, const uchar *from, size_t n) {
  out->append(reinterpret_cast<const char *>(from), n);
}

// Seven bits a byte, the lowest first; all bytes but the last have the highest bit set.
inline void append_varint(std::string *out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : at_(bytes_of(text)), end_(at_ + text.size()) {}

  const uchar *at() const { return at_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  // The next `n` bytes, which are passed over; nullptr: there are not so many.
  const uchar *take(size_t n) {
    if (n > left()) return nullptr;
    const uchar *from = at_;
    at_ += n;
    return from;
  }
  // Passes over `n` bytes, at most those that are left.
  void pass(size_t n) { at_ += n; }
  bool varint(uint64_t *value) {
    if (at_ < end_ && *at_ < 0x80) {
      *value = *at_++;
      return true;
    }
    *value = 0;
    for (unsigned shift = 0; shift < 64 && at_ < end_; shift += 7) {
      const uint64_t byte = *at_++;
      *value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  // Bytes with their length before them.
  bool with_length(std::string_view *bytes) {
    uint64_t n = 0;
    if (!varint(&n) || n > left()) return false;
    *bytes = std::string_view(reinterpret_cast<const char *>(at_), static_cast<size_t>(n));
    at_ += n;
    return true;
  }

 private:
  const uchar *at_;
  const uchar *end_;
};

// Turns all bits of `out` from byte `start` on, as in a descending part.
inline void turn_bits(std::string *out, size_t start) {
  for (size_t i = start; i < out->size(); i++) (*out)[i] = static_cast<char>(~(*out)[i]);
}

// `key` becomes the smallest that is above all keys that begin with it; false: there is none.
inline bool next_after_prefix(std::string *key) {
  while (!key->empty() && static_cast<uchar>(key->back()) == 0xff) key->pop_back();
  if (key->empty()) return false;
  key->back()++;
  return true;
}

// `key` becomes the next of its length, which is where keys that begin with that one begin: locked
// ranges of neighbors touch, and become one. Keys that begin as it did are below, and perhaps
// shorter ones behind them. False: there is none.
inline bool next_of_length(std::string *key) {
  for (size_t i = key->size(); i > 0; i--) {
    if (static_cast<uchar>(++(*key)[i - 1]) != 0) return true;
  }
  return false;
}

inline bool begins_with(std::string_view key, std::string_view prefix) {
  return key.substr(0, prefix.size()) == prefix;
}

}  // namespace shale_sql
