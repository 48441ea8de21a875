// Where a column's value is in the server's record, and how it is stored.

#include "codec/column.h"

#include "server.h"

#include "codec/number_form.h"

namespace shale_sql {

Column::Column(const TABLE *table, const Field *field) {
  const uchar *record = table->record[0];
  defaults_ = table->s->default_values;
  offset_ = static_cast<uint32_t>(field->ptr - record);
  if (field->real_maybe_null()) {
    null_bit_ = field->null_bit;
    null_offset_ = static_cast<uint32_t>(field->null_ptr - record);
  }
  bytes_ = fixed_bytes_ = field->pack_length_in_rec();
  const Type_handler *type = field->type_handler();
  if (field->flags & BLOB_FLAG) {
    form_ = Form::kBlob;
    const Field_blob *blob = static_cast<const Field_blob *>(field);
    length_bytes_ = static_cast<uchar>(blob->pack_length_no_ptr());
    fixed_bytes_ = 0;
  } else if (field->real_type() == MYSQL_TYPE_VARCHAR) {
    form_ = Form::kVarchar;
    length_bytes_ = static_cast<uchar>(static_cast<const Field_varstring *>(field)->length_bytes);
    bytes_ = field->field_length;
    fixed_bytes_ = 0;
  } else if (type == &type_handler_string || type == &type_handler_var_string) {
    form_ = Form::kPadded;
    charset_ = field->charset();
    bytes_ = field->field_length;
    fixed_bytes_ = 0;
  } else if (field->real_type() == MYSQL_TYPE_BIT) {
    const Field_bit *bit = static_cast<const Field_bit *>(field);
    if (!bit->bit_len) return;
    form_ = Form::kBits;
    bit_byte_ = static_cast<uint32_t>(bit->bit_ptr - record);
    bit_offset_ = bit->bit_ofs;
    bit_count_ = static_cast<uchar>(bit->bit_len);
    bytes_ = bit->bytes_in_rec;
    fixed_bytes_ = bytes_ + 1;
  }
}

// The bytes of a CHAR or BINARY without the padding at its end.
size_t Column::padded_bytes(const uchar *text) const {
  if (charset_->mbminlen > 1)
    return charset_->lengthsp(reinterpret_cast<const char *>(text), bytes_);
  const uchar pad = charset_->pad_char;
  const uint64_t pads = pad * 0x0101010101010101u;
  size_t n = bytes_;
  for (; n >= 8; n -= 8) {
    if (load_low_first(text + n - 8, 8) != pads) break;
  }
  while (n > 0 && text[n - 1] == pad) n--;
  return n;
}

// Where the value is, and how long, apart from bits.
size_t Column::value_of(const uchar *record, const uchar **value) const {
  *value = record + offset_;
  if (form_ == Form::kPadded) return padded_bytes(*value);
  if (!length_bytes_) return bytes_;
  const size_t n = load_low_first(*value, length_bytes_);
  *value += length_bytes_;
  if (form_ == Form::kBlob) memcpy(value, *value, sizeof(*value));
  return n;
}

void Column::append(const uchar *record, std::string *out) const {
  const uchar *from;
  const size_t n = value_of(record, &from);
  if (form_ == Form::kBits) {
    out->push_back(static_cast<char>(get_rec_bits(record + bit_byte_, bit_offset_, bit_count_)));
  } else if (form_ != Form::kFixed) {
    append_varint(out, n);
  }
  append_bytes(out, from, n);
}

bool Column::same(const uchar *record, const uchar *other) const {
  const bool null = is_null(record);
  if (null || is_null(other)) return null == is_null(other);
  if (form_ == Form::kBits && get_rec_bits(record + bit_byte_, bit_offset_, bit_count_) !=
                                  get_rec_bits(other + bit_byte_, bit_offset_, bit_count_)) {
    return false;
  }
  const uchar *one, *two;
  const size_t n = value_of(record, &one);
  return n == value_of(other, &two) && (n == 0 || memcmp(one, two, n) == 0);
}

void Column::clear(uchar *record) const {
  const uchar *from = defaults_ + offset_;
  size_t n = bytes_;
  if (form_ == Form::kVarchar) n = length_bytes_ + load_low_first(from, length_bytes_);
  if (form_ == Form::kBlob) n = length_bytes_ + sizeof(from);
  memcpy(record + offset_, from, n);
  if (form_ == Form::kBits) {
    set_rec_bits(get_rec_bits(defaults_ + bit_byte_, bit_offset_, bit_count_), record + bit_byte_,
                 bit_offset_, bit_count_);
  }
  record[null_offset_] |= null_bit_;
}

bool Column::store(const uchar *from, size_t n, uchar *record) const {
  uchar *to = record + offset_;
  switch (form_) {
    case Form::kFixed:
      if (n != bytes_) return false;
      memcpy(to, from, n);
      return true;
    case Form::kBits:
      if (n != bytes_ + 1) return false;
      set_rec_bits(from[0] & ((1 << bit_count_) - 1), record + bit_byte_, bit_offset_, bit_count_);
      memcpy(to, from + 1, bytes_);
      return true;
    case Form::kPadded:
      if (n > bytes_) return false;
      memcpy(to, from, n);
      if (charset_->mbminlen > 1) {
        charset_->fill(reinterpret_cast<char *>(to + n), bytes_ - n, charset_->pad_char);
      } else {
        memset(to + n, charset_->pad_char, bytes_ - n);
      }
      return true;
    case Form::kVarchar:
      if (n > bytes_) return false;
      store_low_first(n, to, length_bytes_);
      memcpy(to + length_bytes_, from, n);
      return true;
    case Form::kBlob:
      if (length_bytes_ < 8 && n >> (8 * length_bytes_)) return false;
      store_low_first(n, to, length_bytes_);
      memcpy(to + length_bytes_, &from, sizeof(from));
      return true;
  }
  return false;
}

}  // namespace shale_sql
