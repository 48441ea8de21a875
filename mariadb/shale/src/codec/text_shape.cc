// Texts of one shape become those of another, level by level.

#include "codec/text_shape.h"

#include <cstring>

namespace shale_sql {

bool TextShape::parse(std::string_view form) {
  Reader reader(form);
  if (!reader.take(1) || !reader.varint(&collation_) || !reader.varint(&chars_)) return false;
  const uchar *count = reader.take(1);
  if (!count || *count == 0 || *count > kMostLevels) return false;
  level_count_ = *count;
  for (unsigned i = 0; i < level_count_; i++) {
    Level &level = levels_[i];
    const uchar *about = reader.take(2);
    if (!about || about[1] == 0 || about[1] > sizeof(level.pad.bytes)) return false;
    level.padded = about[0] != 0;
    level.pad = Pad{{}, about[1]};
    const uchar *pad = reader.take(level.pad.size);
    if (!pad) return false;
    memcpy(level.pad.bytes, pad, level.pad.size);
  }
  return true;
}

bool TextShape::skip(Reader *key, uchar mask) const {
  for (unsigned i = 0; i < level_count_; i++) {
    const Level &level = levels_[i];
    if (level.padded ? !skip_padded(key, mask, level.pad) : !skip_plain(key, mask)) return false;
  }
  return true;
}

bool TextShape::same_levels(const TextShape &other) const {
  if (level_count_ != other.level_count_) return false;
  for (unsigned i = 0; i < level_count_; i++) {
    if (levels_[i].padded != other.levels_[i].padded) return false;
  }
  return true;
}

namespace {

bool ends_with(const std::string &units, const Pad &pad) {
  return units.size() >= pad.size &&
         memcmp(units.data() + units.size() - pad.size, pad.bytes, pad.size) == 0;
}

}  // namespace

TextShape::Changed TextShape::change_level(unsigned i, Reader *text, uchar mask,
                                           const TextShape &to, std::string *out) const {
  const Level &level = levels_[i];
  const Pad &pad = level.pad;
  std::string units;
  if (level.padded) {
    if (!restore_units(text, mask, pad, &units)) return Changed::kDamaged;
  } else {
    units.resize(text->left());
    size_t n = 0;
    uchar *room = reinterpret_cast<uchar *>(units.data());
    if (!restore_plain(text, mask, room, units.size(), &n)) return Changed::kDamaged;
    units.resize(n);
  }
  if (to.levels_[i].padded) {
    // A CHAR's value has no spaces at its end, a VARCHAR's here has no others that are like them.
    if (units.size() % pad.size != 0 || (!level.padded && ends_with(units, pad))) {
      return Changed::kNoMatch;
    }
    append_padded(out, bytes_of(units), units.size(), pad);
    return Changed::kText;
  }
  // CHARs of two lengths: one has more spaces at its end.
  if (chars_ != 0 && to.chars_ != 0) {
    for (uint64_t chars = to.chars_; chars < chars_; chars++) {
      if (!ends_with(units, pad)) return Changed::kNoMatch;
      units.resize(units.size() - pad.size);
    }
    for (uint64_t chars = chars_; chars < to.chars_ && chars < UINT16_MAX; chars++) {
      units.append(reinterpret_cast<const char *>(pad.bytes), pad.size);
    }
  }
  append_plain(out, bytes_of(units), units.size());
  return Changed::kText;
}

TextShape::Changed TextShape::change(std::string_view text, uchar mask, const TextShape &to,
                                     uchar to_mask, std::string *out) const {
  if (collation_ != to.collation_ || level_count_ != to.level_count_) return Changed::kNoMatch;
  const bool one_is_char = (chars_ == 0) != (to.chars_ == 0);
  if (level_count_ > 1 && (one_is_char || !same_levels(to))) return Changed::kNoMatch;
  const size_t start = out->size();
  Reader reader(text);
  for (unsigned i = 0; i < level_count_; i++) {
    const Changed level = change_level(i, &reader, mask, to, out);
    if (level != Changed::kText) return level;
  }
  if (to_mask) turn_bits(out, start);
  return Changed::kText;
}

}  // namespace shale_sql
