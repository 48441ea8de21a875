// Writing, passing over and giving back both forms of strings.

#include "codec/text_form.h"

#include <cstring>

namespace shale_sql {

namespace {

constexpr char kBelow = 1, kEnd = 2, kAbove = 3;

// The same for pads of one byte, which most have: memchr finds the pads.
void append_padded_bytes(std::string *out, const uchar *from, size_t n, uchar pad) {
  const uchar *end = from + n;
  while (end > from && end[-1] == pad) end--;
  while (from < end) {
    const void *found = memchr(from, pad, static_cast<size_t>(end - from));
    const uchar *run = found ? static_cast<const uchar *>(found) : end;
    append_bytes(out, from, static_cast<size_t>(run - from));
    from = run;
    while (from < end && *from == pad) from++;
    if (from == run) break;
    const char what_follows = *from < pad ? kBelow : kAbove;
    for (; run < from; run++) {
      out->push_back(static_cast<char>(pad));
      out->push_back(what_follows);
    }
  }
  out->push_back(static_cast<char>(pad));
  out->push_back(kEnd);
}

}  // namespace

void append_plain(std::string *out, const uchar *from, size_t n) {
  const uchar *end = from + n;
  while (from < end) {
    const void *found = memchr(from, 0, static_cast<size_t>(end - from));
    const uchar *zero = found ? static_cast<const uchar *>(found) : end;
    append_bytes(out, from, static_cast<size_t>(zero - from));
    from = zero;
    if (from == end) break;
    out->append("\0\1", 2);
    from++;
  }
  out->append("\0\0", 2);
}

void append_padded(std::string *out, const uchar *from, size_t n, const Pad &pad) {
  const unsigned size = pad.size;
  if (size == 1) return append_padded_bytes(out, from, n, pad.bytes[0]);
  const uchar *end = from + n;
  while (end > from && memcmp(end - size, pad.bytes, size) == 0) end -= size;
  while (from < end) {
    const uchar *run = from;
    while (memcmp(from, pad.bytes, size) == 0) from += size;
    const char what_follows = memcmp(from, pad.bytes, size) < 0 ? kBelow : kAbove;
    for (; run < from; run += size) {
      append_bytes(out, pad.bytes, size);
      out->push_back(what_follows);
    }
    append_bytes(out, from, size);
    from += size;
  }
  append_bytes(out, pad.bytes, size);
  out->push_back(kEnd);
}

bool skip_plain(Reader *key, uchar mask) {
  while (key->left() >= 2) {
    const void *zero = memchr(key->at(), mask, key->left() - 1);
    if (!zero) return false;
    key->pass(static_cast<size_t>(static_cast<const uchar *>(zero) - key->at()) + 2);
    if (key->at()[-1] == mask) return true;
  }
  return false;
}

bool skip_padded(Reader *key, uchar mask, const Pad &pad) {
  uchar end[4];
  for (unsigned i = 0; i < pad.size; i++) end[i] = static_cast<uchar>(pad.bytes[i] ^ mask);
  while (key->left() > pad.size) {
    if (memcmp(key->at(), end, pad.size) != 0) {
      key->pass(pad.size);
      continue;
    }
    key->pass(pad.size + 1);
    if (key->at()[-1] == (kEnd ^ mask)) return true;
  }
  return false;
}

bool restore_plain(Reader *key, uchar mask, uchar *to, size_t room, size_t *n) {
  const uchar *start = to;
  while (key->left() >= 2) {
    const uchar byte = static_cast<uchar>(*key->at() ^ mask);
    if (byte != 0) {
      key->pass(1);
    } else {
      const uchar second = static_cast<uchar>(key->at()[1] ^ mask);
      key->pass(2);
      if (second == 0) {
        *n = static_cast<size_t>(to - start);
        return true;
      }
      if (second != 1) return false;
    }
    if (room-- == 0) return false;
    *to++ = byte;
  }
  return false;
}

bool restore_padded(Reader *key, uchar mask, uchar pad, uchar *to, size_t room, size_t *n) {
  const uchar *start = to;
  while (key->left() >= 2) {
    const uchar byte = static_cast<uchar>(*key->at() ^ mask);
    if (byte != pad) {
      key->pass(1);
    } else {
      const uchar second = static_cast<uchar>(key->at()[1] ^ mask);
      key->pass(2);
      if (second == kEnd) {
        *n = static_cast<size_t>(to - start);
        return true;
      }
      if (second != kBelow && second != kAbove) return false;
    }
    if (room-- == 0) return false;
    *to++ = byte;
  }
  return false;
}

bool restore_units(Reader *key, uchar mask, const Pad &pad, std::string *units) {
  const std::string_view one(reinterpret_cast<const char *>(pad.bytes), pad.size);
  units->clear();
  for (;;) {
    const uchar *from = key->take(pad.size);
    if (!from) return false;
    std::string unit(reinterpret_cast<const char *>(from), pad.size);
    if (mask) turn_bits(&unit, 0);
    if (unit == one) {
      const uchar *mark = key->take(1);
      if (!mark) return false;
      const char what_follows = static_cast<char>(*mark ^ mask);
      if (what_follows == kEnd) return true;
      if (what_follows != kBelow && what_follows != kAbove) return false;
    }
    units->append(unit);
  }
}

}  // namespace shale_sql
