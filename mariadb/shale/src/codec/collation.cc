// How a collation's strings become bytes: by the server's weights, level by level, or as they are.

#include "codec/collation.h"

#include <my_global.h>
#include <m_ctype.h>

#include <algorithm>
#include <memory>

namespace shale_sql {

// Weights of one level: on the stack, unless there are many.
class Weights {
 public:
  uchar *bytes() { return more_ ? more_.get() : some_; }
  size_t size() const { return size_; }
  void grow(size_t size) {
    if (size <= size_) return;
    more_.reset(new uchar[size]);
    size_ = size;
  }

 private:
  uchar some_[1024];
  std::unique_ptr<uchar[]> more_;
  size_t size_ = sizeof(some_);
};

namespace {

const uchar kSpaces[4] = {' ', ' ', ' ', ' '};

bool named(CHARSET_INFO *charset, const char *name) {
  return strcmp(charset->coll_name.str, name) == 0;
}

// The Czech collations of one-byte character sets take off spaces at the end, and compare the
// weights of all levels, one level after the other with a 1 between them, as they then are.
bool is_old_czech(CHARSET_INFO *charset) {
  return (charset->state & MY_CS_STRNXFRM_BAD_NWEIGHTS) != 0;
}

bool is_thai(CHARSET_INFO *charset) {
  return named(charset, "tis620_thai_ci") || named(charset, "tis620_thai_nopad_ci");
}

// Its weights for sorting go by strokes, and are the same for some characters that it does not
// take for equal: it compares by codes.
bool is_big5(CHARSET_INFO *charset) {
  return named(charset, "big5_chinese_ci") || named(charset, "big5_chinese_nopad_ci");
}

size_t weights_by_code(CHARSET_INFO *charset, const uchar *text, size_t n, uchar *to) {
  const char *end = reinterpret_cast<const char *>(text + n);
  for (size_t i = 0; i < n;) {
    const uint bytes = my_ismbchar(charset, reinterpret_cast<const char *>(text + i), end);
    if (bytes) {
      memcpy(to + i, text + i, bytes);
      i += bytes;
    } else {
      to[i] = charset->sort_order[text[i]];
      i++;
    }
  }
  return n;
}

}  // namespace

Collation::Collation(const charset_info_st *charset, bool fixed) : charset_(charset) {
  const bool nopad = (charset->state & MY_CS_NOPAD) != 0;
  levels_[0] = Level{0, !nopad || fixed, Pad{{' '}, 1}};
  // Byte order is the order of code points in UTF-8, and of codes in the others of this kind.
  raw_ = (charset->state & MY_CS_BINSORT) && charset->mbminlen == 1;
  strip_ = levels_[0].padded;
  if (raw_) return;
  if (is_old_czech(charset)) {
    levels_[0].padded = false;
    strip_ = all_levels_in_one_ = true;
    return;
  }
  by_code_ = is_big5(charset);
  set_levels(fixed);
  // It moves characters behind those that follow, spaces too; NO PAD compares up to a zero.
  if (is_thai(charset)) {
    strip_ = false;
    ends_at_zero_ = nopad && !fixed;
  }
}

// What spaces weigh on each level decides how the ends of strings compare.
void Collation::set_levels(bool fixed) {
  const bool nopad = (charset_->state & MY_CS_NOPAD) != 0;
  const bool unicode = charset_->uca != nullptr;
  const unsigned used = unicode && charset_->levels_for_order ? charset_->levels_for_order : 1;
  uchar space[8];
  const uint space_bytes = charset_->wc_mb(' ', space, space + sizeof(space));
  level_count_ = 0;
  for (unsigned i = 0; i < 6; i++) {
    if (!(used >> i & 1)) continue;
    Level &level = levels_[level_count_++];
    level.flags = used > 1 ? MY_STRXFRM_LEVEL1 << i : 0;
    // Of NO PAD collations with levels only the first goes without padding; not so in a CHAR,
    // whose padding is compared like the rest.
    level.padded = !nopad || (unicode ? !fixed && i > 0 : fixed);
    Weights weight;
    const size_t n = weights(level.flags, space, space_bytes, &weight);
    level.pad = Pad{{}, n >= 1 && n <= sizeof(level.pad.bytes) ? static_cast<unsigned>(n) : 1};
    memcpy(level.pad.bytes, weight.bytes(), std::min<size_t>(n, level.pad.size));
    strip_ = strip_ && level.padded && n == level.pad.size;
  }
}

// The buffer grows until there is room left, so that no weight is missing.
size_t Collation::weights(unsigned flags, const uchar *text, size_t n, Weights *to) const {
  to->grow(n + 1);
  if (by_code_) return weights_by_code(charset_, text, n, to->bytes());
  for (;;) {
    const size_t room = to->size();
    const size_t got = charset_->coll->strnxfrm(charset_, to->bytes(), room,
                                                static_cast<uint>(room), text, n, flags);
    if (got < room) return got;
    to->grow(2 * room);
  }
}

void Collation::append(const uchar *text, size_t n, std::string *out) const {
  if (n == 0) text = kSpaces;
  if (strip_) n = charset_->lengthsp(reinterpret_cast<const char *>(text), n);
  if (raw_) {
    if (levels_[0].padded) return append_padded(out, text, n, levels_[0].pad);
    return append_plain(out, text, n);
  }
  for (unsigned i = 0; i < level_count_; i++) append_level(levels_[i], text, n, out);
}

void Collation::append_level(const Level &level, const uchar *text, size_t n,
                             std::string *out) const {
  Weights buffer;
  size_t size = weights(level.flags, text, n, &buffer);
  if (ends_at_zero_) size = strnlen(reinterpret_cast<const char *>(buffer.bytes()), size);
  if (!level.padded) return append_plain(out, buffer.bytes(), size);
  // There was room left: a collation has weights of one size, but if not, still nothing is lost.
  while (size % level.pad.size != 0 && size < buffer.size()) buffer.bytes()[size++] = 0;
  append_padded(out, buffer.bytes(), size - size % level.pad.size, level.pad);
}

bool Collation::skip(Reader *key, uchar mask) const {
  for (unsigned i = 0; i < level_count_; i++) {
    const Level &level = levels_[i];
    if (level.padded ? !skip_padded(key, mask, level.pad) : !skip_plain(key, mask)) return false;
  }
  return true;
}

void Collation::append_beginning(const uchar *text, size_t n, std::string *out) const {
  if (n == 0) return;
  if (raw_) {
    append(text, n, out);
  } else if (all_levels_in_one_) {
    Weights buffer;
    const size_t size = weights(levels_[0].flags, text, n, &buffer);
    const uchar *first = buffer.bytes();
    append_plain(out, first, static_cast<size_t>(std::find(first, first + size, 1) - first));
  } else {
    append_level(levels_[0], text, n, out);
  }
  out->resize(out->size() - (levels_[0].padded ? levels_[0].pad.size + 1 : 2));
}

void Collation::describe(std::string *out) const {
  out->push_back(static_cast<char>(level_count_));
  for (unsigned i = 0; i < level_count_; i++) {
    const Level &level = levels_[i];
    out->push_back(level.padded ? 1 : 0);
    out->push_back(static_cast<char>(level.pad.size));
    append_bytes(out, level.pad.bytes, level.pad.size);
  }
}

bool Collation::restore(Reader *key, uchar mask, uchar *to, size_t room, size_t *n) const {
  if (levels_[0].padded) return restore_padded(key, mask, levels_[0].pad.bytes[0], to, room, n);
  return restore_plain(key, mask, to, room, n);
}

size_t Collation::max_bytes(size_t n) const {
  const size_t weights = raw_ ? n : charset_->coll->strnxfrmlen(charset_, n);
  size_t bytes = 0;
  for (unsigned i = 0; i < level_count_; i++) {
    const Level &level = levels_[i];
    const size_t of_level = weights / level_count_ + level_count_;
    bytes += level.padded ? max_padded(of_level, level.pad) : max_plain(of_level);
  }
  return bytes;
}

size_t Collation::prefix_bytes(const uchar *text, size_t n, size_t chars) const {
  if (n <= chars) return n;
  const char *from = reinterpret_cast<const char *>(text);
  return std::min(n, charset_->charpos(from, from + n, chars));
}

}  // namespace shale_sql
