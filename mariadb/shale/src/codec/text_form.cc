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

// How many bytes there are before the next `byte`, or else up to the end.
size_t run_before(const Reader &key, uchar byte) {
  if (key.left() == 0) return 0;
  const void *found = memchr(key.at(), byte, key.left());
  return found ? static_cast<size_t>(static_cast<const uchar *>(found) - key.at()) : key.left();
}

// Passes over `n` bytes, which are put back as they were before their bits were turned.
void restore_run(Reader *key, size_t n, uchar mask, uchar **to) {
  if (n == 0) return;
  const uchar *from = key->take(n);
  if (mask == 0) {
    memcpy(*to, from, n);
  } else {
    for (size_t i = 0; i < n; i++) (*to)[i] = static_cast<uchar>(from[i] ^ mask);
  }
  *to += n;
}

// Passes over a text in which `escaped` has a mark behind it, up to the one with the mark `end`.
bool skip_escaped(Reader *key, uchar escaped, uchar end) {
  while (key->left() > 1) {
    key->pass(run_before(*key, escaped));
    if (key->left() < 2) return false;
    key->pass(2);
    if (key->at()[-1] == end) return true;
  }
  return false;
}

// Gives such a text back, as it was before its bits were turned; `marks` are those that `byte` may
// have where it is part of the text.
bool restore_escaped(Reader *key, uchar mask, uchar byte, uchar end, std::string_view marks,
                     uchar *to, size_t room, size_t *n) {
  const uchar *start = to;
  for (;;) {
    const size_t run = run_before(*key, static_cast<uchar>(byte ^ mask));
    if (run > room || key->left() < run + 2) return false;
    restore_run(key, run, mask, &to);
    room -= run;
    const uchar mark = static_cast<uchar>(key->at()[1] ^ mask);
    key->pass(2);
    if (mark == end) {
      *n = static_cast<size_t>(to - start);
      return true;
    }
    if (marks.find(static_cast<char>(mark)) == std::string_view::npos || room-- == 0) return false;
    *to++ = byte;
  }
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

bool skip_plain(Reader *key, uchar mask) { return skip_escaped(key, mask, mask); }

bool skip_padded(Reader *key, uchar mask, const Pad &pad) {
  uchar end[4];
  for (unsigned i = 0; i < pad.size; i++) end[i] = static_cast<uchar>(pad.bytes[i] ^ mask);
  if (pad.size == 1) return skip_escaped(key, end[0], kEnd ^ mask);
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
  return restore_escaped(key, mask, 0, 0, "\1", to, room, n);
}

bool restore_padded(Reader *key, uchar mask, uchar pad, uchar *to, size_t room, size_t *n) {
  const char marks[] = {kBelow, kAbove};
  return restore_escaped(key, mask, pad, kEnd, {marks, 2}, to, room, n);
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
