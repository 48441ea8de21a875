// Passing over the parts of keys, and turning those of one index into those of another, part by
// part.

#include "codec/key_shape.h"

#include "codec/bytes.h"
#include "codec/text_form.h"
#include "codec/text_shape.h"

namespace shale_sql {

namespace {

constexpr uchar kNull = 0, kNotNull = 1;

uchar mask_of(const PartDef &part) { return part.descending ? 0xff : 0; }

FormClass class_of(const PartDef &part) {
  return part.form.empty() ? FormClass::kSorted : static_cast<FormClass>(part.form[0]);
}

bool is_bytes(const PartDef &part) {
  return class_of(part) == FormClass::kBytes || class_of(part) == FormClass::kBinary;
}

bool is_integer(const PartDef &part) {
  return class_of(part) == FormClass::kSigned || class_of(part) == FormClass::kUnsigned;
}

bool skip_form(const PartDef &part, Reader *key) {
  if (part.fixed_bytes) return key->take(part.fixed_bytes) != nullptr;
  TextShape text;
  return text.parse(part.form) && text.skip(key, mask_of(part));
}

// Passes over the byte that says NULL or not.
bool take_mark(const PartDef &part, Reader *key, bool *is_null) {
  *is_null = false;
  if (!part.nullable) return true;
  const uchar *byte = key->take(1);
  if (!byte) return false;
  const uchar mark = *byte ^ mask_of(part);
  *is_null = mark == kNull;
  return mark <= kNotNull;
}

// The bytes that a form stands for, of types that InnoDB compares as bytes.
bool restore_bytes(const PartDef &part, std::string_view form, std::string *value) {
  value->assign(form);
  if (part.fixed_bytes) {
    if (part.descending) turn_bits(value, 0);
    return true;
  }
  Reader reader(form);
  size_t n = 0;
  uchar *to = reinterpret_cast<uchar *>(&(*value)[0]);
  if (!restore_plain(&reader, mask_of(part), to, value->size(), &n)) return false;
  value->resize(n);
  return true;
}

Translated append_bytes_as(const PartDef &from, const PartDef &to, std::string_view form,
                           std::string *out) {
  std::string value;
  if (!restore_bytes(from, form, &value)) return Translated::kDamaged;
  const size_t start = out->size();
  if (to.fixed_bytes) {
    if (value.size() != to.fixed_bytes) return Translated::kNoMatch;
    out->append(value);
  } else {
    append_plain(out, bytes_of(value), value.size());
  }
  if (to.descending) turn_bits(out, start);
  return Translated::kKey;
}

Translated append_text_as(const PartDef &from, const PartDef &to, std::string_view form,
                          std::string *out) {
  TextShape was, is;
  if (!was.parse(from.form) || !is.parse(to.form)) return Translated::kDamaged;
  switch (was.change(form, mask_of(from), is, mask_of(to), out)) {
    case TextShape::Changed::kText: return Translated::kKey;
    case TextShape::Changed::kNoMatch: return Translated::kNoMatch;
    default: return Translated::kDamaged;
  }
}

// A form of one part, without the byte that says NULL or not, as one of the other.
Translated append_as(const PartDef &from, const PartDef &to, std::string_view form,
                     std::string *out) {
  if (from.form == to.form) {
    const size_t start = out->size();
    out->append(form);
    if (from.descending != to.descending) turn_bits(out, start);
    return Translated::kKey;
  }
  if (!from.whole || !to.whole) return Translated::kNoMatch;
  if (is_bytes(from) && is_bytes(to)) return append_bytes_as(from, to, form, out);
  if (class_of(from) == FormClass::kText && class_of(to) == FormClass::kText) {
    return append_text_as(from, to, form, out);
  }
  // DATE is a number without a sign here, and with one in InnoDB, where MEDIUMINT references it.
  if (is_integer(from) && is_integer(to) && from.fixed_bytes == to.fixed_bytes) {
    const size_t start = out->size();
    out->append(form);
    if (from.descending != to.descending) turn_bits(out, start);
    (*out)[start] = static_cast<char>((*out)[start] ^ 0x80);
    return Translated::kKey;
  }
  return Translated::kNoMatch;
}

}  // namespace

bool may_reference(const PartDef &child, const PartDef &parent) {
  return child.whole && parent.whole && child.kind == parent.kind;
}

Translated translate_key(std::string_view key, const std::vector<PartDef> &from,
                         const std::vector<PartDef> &to, size_t count, std::string *out) {
  if (count > from.size() || count > to.size()) return Translated::kDamaged;
  out->clear();
  Reader reader(key);
  for (size_t i = 0; i < count; i++) {
    bool is_null;
    if (!take_mark(from[i], &reader, &is_null)) return Translated::kDamaged;
    if (is_null && !to[i].nullable) return Translated::kNoMatch;
    if (to[i].nullable) {
      out->push_back(static_cast<char>((is_null ? kNull : kNotNull) ^ mask_of(to[i])));
    }
    if (is_null) continue;
    const size_t start = key.size() - reader.left();
    if (!skip_form(from[i], &reader)) return Translated::kDamaged;
    const std::string_view form = key.substr(start, key.size() - reader.left() - start);
    const Translated part = append_as(from[i], to[i], form, out);
    if (part != Translated::kKey) return part;
  }
  return Translated::kKey;
}

bool same_forms(const std::vector<PartDef> &from, const std::vector<PartDef> &to, size_t count) {
  if (count > from.size() || count > to.size()) return false;
  for (size_t i = 0; i < count; i++) {
    if (from[i].form != to[i].form || from[i].descending != to[i].descending) return false;
  }
  return true;
}

Translated copy_columns(std::string_view key, const std::vector<PartDef> &from,
                        const std::vector<PartDef> &to, size_t count, std::string *out) {
  out->clear();
  Reader reader(key);
  size_t copied = 0;  // of the key
  for (size_t i = 0; i < count; i++) {
    const bool differs = from[i].nullable != to[i].nullable;
    if (differs) {
      out->append(key, copied, key.size() - reader.left() - copied);
      if (to[i].nullable) out->push_back(static_cast<char>(kNotNull ^ mask_of(to[i])));
    }
    bool is_null;
    if (!take_mark(from[i], &reader, &is_null)) return Translated::kDamaged;
    if (is_null) return Translated::kNoMatch;
    if (differs) copied = key.size() - reader.left();
    if (!skip_form(from[i], &reader)) return Translated::kDamaged;
  }
  out->append(key, copied, key.size() - reader.left() - copied);
  return Translated::kKey;
}

bool columns_end(std::string_view key, const std::vector<PartDef> &parts, size_t count,
                 size_t *end) {
  if (count > parts.size()) return false;
  Reader reader(key);
  for (size_t i = 0; i < count; i++) {
    bool is_null;
    if (!take_mark(parts[i], &reader, &is_null)) return false;
    if (!is_null && !skip_form(parts[i], &reader)) return false;
  }
  *end = key.size() - reader.left();
  return true;
}

bool has_null(std::string_view key, const std::vector<PartDef> &parts, size_t count,
              bool *damaged) {
  *damaged = count > parts.size();
  Reader reader(key);
  for (size_t i = 0; i < count && !*damaged; i++) {
    bool is_null;
    *damaged = !take_mark(parts[i], &reader, &is_null) ||
               (!is_null && !skip_form(parts[i], &reader));
    if (is_null && !*damaged) return true;
  }
  return false;
}

}  // namespace shale_sql
