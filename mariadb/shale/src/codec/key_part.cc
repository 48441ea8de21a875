// How a column's value becomes bytes of a key, by its type, and comes back.

#include "codec/key_part.h"

#include "server.h"

#include "codec/number_form.h"
#include "codec/value_words.h"

namespace shale_sql {

namespace {

constexpr uchar kNull = 0, kNotNull = 1;
// How the forms of texts end (text_form.h): the plain one, and the one with spaces as pads.
constexpr char kEnds[][3] = {"\0\0", " \2"};

// The types of the server's own plugins whose values compare as the bytes of the record do.
bool compares_as_bytes(const Field *field) {
  const Name name = field->type_handler()->name();
  for (const char *known : {"inet4", "inet6", "uuid"}) {
    if (name.length() == strlen(known) && memcmp(name.ptr(), known, name.length()) == 0)
      return true;
  }
  return false;
}

bool is_char(const Field *field) {
  const Type_handler *type = field->type_handler();
  return type == &type_handler_string || type == &type_handler_var_string;
}

}  // namespace

KeyPart::KeyPart(TABLE *table, const KEY_PART_INFO &info) : table_(table) {
  // The part's own field may be one that is cut to the part's length.
  field_ = table->field[info.fieldnr - 1];
  field_index_ = field_->field_index;
  offset_ = static_cast<unsigned>(field_->ptr - table->record[0]);
  if (info.null_bit) {
    null_bit_ = static_cast<uchar>(info.null_bit);
    null_offset_ = info.null_offset;
  }
  mask_ = (info.key_part_flag & HA_REVERSE_SORT) ? 0xff : 0;
  type_ = field_->real_type();
  signed_ = !(field_->flags & UNSIGNED_FLAG);
  decimals_ = static_cast<uchar>(field_->decimals());
  if (type_ == MYSQL_TYPE_NEWDECIMAL) {
    precision_ = static_cast<uchar>(static_cast<Field_new_decimal *>(field_)->precision);
  }
  tuple_text_ = info.length;
  tuple_bytes_ = info.store_length;
  whole_ = !(field_->flags & BLOB_FLAG) && info.length == field_->key_length();
  choose_form(info.length, whole_);
  if (form_bytes_) max_bytes_ = form_bytes_;
  if (null_bit_) max_bytes_++;
}

void KeyPart::set_integer(unsigned n, bool is_signed) {
  form_ = Form::kInteger;
  bytes_ = n;
  form_bytes_ = n;
  turn_ = (is_signed ? sign_bit(n) : 0) ^ (mask_ ? ~uint64_t{0} : 0);
}

void KeyPart::choose_form(unsigned part_bytes, bool whole) {
  const unsigned n = field_->pack_length_in_rec();
  form_ = Form::kBytes;
  bytes_ = form_bytes_ = n;
  if (field_->flags & BLOB_FLAG) return choose_text(Form::kBlob, part_bytes, whole);
  switch (field_->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
      return set_integer(n, !(field_->flags & UNSIGNED_FLAG));
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_NEWDATE:
      return set_integer(n, false);
    // Of the types of time, those without a fraction are numbers in the old format only.
    case MYSQL_TYPE_TIME:
      if (field_->decimals() == 0) set_integer(n, true);
      return;
    case MYSQL_TYPE_TIMESTAMP:
    case MYSQL_TYPE_DATETIME:
      if (field_->decimals() == 0) set_integer(n, false);
      return;
    case MYSQL_TYPE_TIME2:
    case MYSQL_TYPE_TIMESTAMP2:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_NEWDECIMAL:
      return;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
      form_ = Form::kReal;
      lost_ = Lost::kMinusZero;
      turn_ = mask_ ? ~uint64_t{0} : 0;
      return;
    case MYSQL_TYPE_BIT: {
      const Field_bit *bit = static_cast<const Field_bit *>(field_);
      bytes_ = bit->bytes_in_rec;
      form_bytes_ = bytes_ + (bit->bit_len ? 1 : 0);
      if (!bit->bit_len) return;
      form_ = Form::kBits;
      bit_byte_ = static_cast<unsigned>(bit->bit_ptr - table_->record[0]);
      bit_offset_ = bit->bit_ofs;
      bit_count_ = static_cast<uchar>(bit->bit_len);
      return;
    }
    case MYSQL_TYPE_VARCHAR:
      return choose_text(Form::kVarchar, part_bytes, whole);
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_VAR_STRING:
      if (is_char(field_)) return choose_text(Form::kChar, part_bytes, whole);
      if (compares_as_bytes(field_)) return;
      break;
    default:
      break;
  }
  form_ = Form::kSorted;
  form_bytes_ = field_->sort_length();
  lost_ = Lost::kValue;
}

void KeyPart::choose_text(Form form, unsigned part_bytes, bool whole) {
  form_ = form;
  charset_ = field_->charset();
  bytes_ = field_->field_length;
  if (form == Form::kChar && charset_ == &my_charset_bin) {  // BINARY: zeros at its end count
    form_ = Form::kBytes;
    bytes_ = form_bytes_ = part_bytes;
    if (!whole) lost_ = Lost::kPrefix;
    return;
  }
  collation_.reset(new Collation(charset_, form == Form::kChar));
  form_bytes_ = 0;
  chars_ = part_bytes / charset_->mbmaxlen;
  cut_ = !whole || (form == Form::kChar && !collation_->strips());
  max_bytes_ = collation_->max_bytes(part_bytes);
  if (form == Form::kVarchar) {
    length_bytes_ = static_cast<uchar>(static_cast<Field_varstring *>(field_)->length_bytes);
  } else if (form == Form::kBlob) {
    length_bytes_ = static_cast<uchar>(static_cast<Field_blob *>(field_)->pack_length_no_ptr());
  }
  if (!whole) {
    lost_ = Lost::kPrefix;
  } else if (!collation_->restorable()) {
    lost_ = Lost::kValue;
  } else if (form == Form::kVarchar && collation_->loses_spaces()) {
    lost_ = Lost::kSpaces;
  }
}

// Where the text of a column is in a record, or the bytes of another.
void KeyPart::value_of(const uchar *record, const uchar **text, size_t *n) const {
  *text = record + offset_;
  *n = bytes_;
  if (!length_bytes_) return;
  *n = load_low_first(*text, length_bytes_);
  *text += length_bytes_;
  if (form_ == Form::kBlob) memcpy(text, *text, sizeof(*text));
}

void KeyPart::append_text(const uchar *text, size_t n, std::string *out) const {
  if (cut_) n = collation_->prefix_bytes(text, n, chars_);
  const size_t start = out->size();
  collation_->append(text, n, out);
  if (mask_) turn_bits(out, start);
}

// Forms whose bytes in a tuple are those of the record.
void KeyPart::append_fixed(const uchar *from, std::string *out) const {
  if (form_ == Form::kReal) return append_real(out, from, bytes_, turn_);
  const size_t start = out->size();
  append_bytes(out, from, form_bytes_);
  if (mask_) turn_bits(out, start);
}

// The server sorts by a field that stands on the record.
void KeyPart::append_sorted(uchar *record, std::string *out) const {
  const size_t start = out->size();
  const size_t n = field_->sort_length();
  out->resize(start + n);
  const my_ptrdiff_t away = record - table_->record[0];
  field_->move_field_offset(away);
  field_->sort_string(reinterpret_cast<uchar *>(&(*out)[start]), static_cast<uint>(n));
  field_->move_field_offset(-away);
  if (mask_) turn_bits(out, start);
}

void KeyPart::sort_tuple(const uchar *tuple, std::string *out) const {
  std::unique_ptr<uchar[]> record(new uchar[table_->s->rec_buff_length]());
  const my_ptrdiff_t away = record.get() - table_->record[0];
  field_->move_field_offset(away);
  field_->set_key_image(tuple, tuple_text_);
  field_->move_field_offset(-away);
  append_sorted(record.get(), out);
}

bool KeyPart::pack(const uchar *record, std::string *out) const {
  if (null_bit_) {
    const bool null = record[null_offset_] & null_bit_;
    out->push_back(static_cast<char>((null ? kNull : kNotNull) ^ mask_));
    if (null) return true;
  }
  switch (form_) {
    case Form::kInteger:
      append_integer(out, record + offset_, bytes_, turn_);
      break;
    case Form::kReal:
    case Form::kBytes:
      append_fixed(record + offset_, out);
      break;
    case Form::kBits: {
      out->push_back(static_cast<char>(
          get_rec_bits(record + bit_byte_, bit_offset_, bit_count_) ^ mask_));
      const size_t start = out->size();
      append_bytes(out, record + offset_, bytes_);
      if (mask_) turn_bits(out, start);
      break;
    }
    case Form::kSorted:
      append_sorted(const_cast<uchar *>(record), out);
      break;
    default: {
      const uchar *text;
      size_t n;
      value_of(record, &text, &n);
      append_text(text, n, out);
    }
  }
  return false;
}

void KeyPart::pack_tuple(const uchar *tuple, std::string *out) const {
  if (null_bit_) {
    const bool null = *tuple++ != 0;
    out->push_back(static_cast<char>((null ? kNull : kNotNull) ^ mask_));
    if (null) return;
  }
  switch (form_) {
    case Form::kInteger:
      append_integer(out, tuple, bytes_, turn_);
      break;
    case Form::kReal:
    case Form::kBytes:
    case Form::kBits:
      append_fixed(tuple, out);
      break;
    case Form::kSorted:
      sort_tuple(tuple, out);
      break;
    case Form::kChar:
      append_text(tuple, tuple_text_, out);
      break;
    default:
      append_text(tuple + HA_KEY_BLOB_LENGTH, std::min<size_t>(uint2korr(tuple), tuple_text_), out);
  }
}

bool KeyPart::skip(Reader *key) const {
  if (null_bit_) {
    const uchar *mark = key->take(1);
    if (!mark) return false;
    if ((*mark ^ mask_) == kNull) return true;
  }
  if (collation_) return collation_->skip(key, mask_);
  return key->take(form_bytes_) != nullptr;
}

// A collation's weights are passed over; the text itself is in the entry's value, if anywhere.
bool KeyPart::restore_text(Reader *key, uchar *record) const {
  if (lost_ == Lost::kPrefix || !collation_->restorable()) return collation_->skip(key, mask_);
  uchar *to = record + offset_ + length_bytes_;
  size_t n = 0;
  if (!collation_->restore(key, mask_, to, bytes_, &n)) return false;
  if (length_bytes_) {
    store_low_first(n, record + offset_, length_bytes_);
  } else {
    charset_->fill(reinterpret_cast<char *>(to + n), bytes_ - n, charset_->pad_char);
  }
  return true;
}

bool KeyPart::unpack(Reader *key, uchar *record, bool *is_null) const {
  *is_null = false;
  if (null_bit_) {
    const uchar *mark = key->take(1);
    if (!mark) return false;
    const uchar turned = *mark ^ mask_;
    if (turned > kNotNull) return false;
    *is_null = turned == kNull;
    if (*is_null) {
      record[null_offset_] |= null_bit_;
      return true;
    }
    record[null_offset_] &= static_cast<uchar>(~null_bit_);
  }
  if (collation_) return restore_text(key, record);
  const uchar *from = key->take(form_bytes_);
  if (!from) return false;
  uchar *to = record + offset_;
  switch (form_) {
    case Form::kInteger:
      restore_integer(from, to, bytes_, turn_);
      break;
    case Form::kReal:
      restore_real(from, to, bytes_, turn_);
      break;
    case Form::kBits:
      set_rec_bits((*from ^ mask_) & ((1 << bit_count_) - 1), record + bit_byte_, bit_offset_,
                   bit_count_);
      from++;
      [[fallthrough]];
    case Form::kBytes:
      if (lost_ == Lost::kPrefix) break;
      for (unsigned i = 0; i < bytes_; i++) to[i] = from[i] ^ mask_;
      break;
    default:
      break;
  }
  return true;
}

void KeyPart::pack_lost(const uchar *record, std::string *out) const {
  const uchar *text;
  size_t n;
  value_of(record, &text, &n);
  if (form_ == Form::kChar) n = charset_->lengthsp(reinterpret_cast<const char *>(text), n);
  append_varint(out, n);
  append_bytes(out, text, n);
}

bool KeyPart::unpack_lost(Reader *value, uchar *record) const {
  std::string_view text;
  if (!value->with_length(&text) || text.size() > bytes_) return false;
  uchar *to = record + offset_;
  const size_t n = text.size();
  if (form_ == Form::kSorted && n != bytes_) return false;
  memcpy(to + length_bytes_, text.data(), n);
  if (form_ == Form::kChar) {
    charset_->fill(reinterpret_cast<char *>(to + n), bytes_ - n, charset_->pad_char);
  }
  if (length_bytes_) store_low_first(n, to, length_bytes_);
  return true;
}

uint64_t KeyPart::lost_count(const uchar *record) const {
  if (lost_ == Lost::kMinusZero) return is_negative_zero(record + offset_, bytes_) ? 1 : 0;
  const uchar *text;
  size_t n;
  value_of(record, &text, &n);
  return n - charset_->lengthsp(reinterpret_cast<const char *>(text), n);
}

bool KeyPart::restore_lost_count(uint64_t count, uchar *record) const {
  uchar *to = record + offset_;
  if (count == 0) return true;
  if (lost_ == Lost::kMinusZero) {
    if (count != 1 || load_low_first(to, bytes_) != 0) return false;
    store_low_first(sign_bit(bytes_), to, bytes_);
    return true;
  }
  const size_t n = load_low_first(to, length_bytes_);
  if (n > bytes_ || count > bytes_ - n) return false;
  memset(to + length_bytes_ + n, ' ', count);
  store_low_first(n + count, to, length_bytes_);
  return true;
}

FormClass KeyPart::form_class() const {
  switch (form_) {
    case Form::kInteger: {
      const uint64_t turn = mask_ ? ~turn_ : turn_;
      return turn & sign_bit(bytes_) ? FormClass::kSigned : FormClass::kUnsigned;
    }
    case Form::kReal: return FormClass::kReal;
    case Form::kBytes:
    case Form::kBits: return FormClass::kBytes;
    case Form::kSorted: return FormClass::kSorted;
    default: return charset_ == &my_charset_bin ? FormClass::kBinary : FormClass::kText;
  }
}

PartDef KeyPart::describe() const {
  PartDef part;
  part.column.assign(field_->field_name.str, field_->field_name.length);
  part.nullable = null_bit_ != 0;
  part.descending = mask_ != 0;
  part.whole = whole_;
  part.fixed_bytes = static_cast<uint32_t>(form_bytes_);
  part.form.push_back(static_cast<char>(form_class()));
  if (collation_) {
    const bool padded = form_ == Form::kChar && collation_->keeps_pads();
    append_varint(&part.form, charset_->number);
    append_varint(&part.form, padded ? chars_ : 0);
    collation_->describe(&part.form);
  } else {
    append_varint(&part.form, form_bytes_);
  }
  if (form_ == Form::kSorted) {
    const Name name = field_->type_handler()->name();
    part.form.append(name.ptr(), name.length());
  }
  // The beginnings of one value differ with their length.
  if (!whole_) append_varint(&part.form, tuple_text_);
  return part;
}

bool KeyPart::words(Reader *key, std::string *out) const {
  if (null_bit_) {
    const uchar *mark = key->take(1);
    if (!mark) return false;
    if ((*mark ^ mask_) == 0) {
      *out = "NULL";
      return true;
    }
  }
  return collation_ ? words_of_text(key, out) : words_of_fixed(key, out);
}

bool KeyPart::words_of_text(Reader *key, std::string *out) const {
  const uchar *start = key->at();
  if (!collation_->restorable()) {
    // The weights: the text itself is in the row only.
    if (!collation_->skip(key, mask_)) return false;
    *out = hex_of(start, static_cast<size_t>(key->at() - start));
    return true;
  }
  std::string text(std::max<size_t>(bytes_, key->left() + sizeof(kEnds)), '\0');
  size_t n = 0;
  uchar *to = reinterpret_cast<uchar *>(&text[0]);
  bool whole = true;
  Reader rest = *key;
  if (!collation_->restore(&rest, mask_, to, text.size(), &n)) {
    // Of one that was cut its beginning, as if it ended there.
    whole = false;
    n = 0;
    for (const char *end : kEnds) {
      std::string closed(reinterpret_cast<const char *>(key->at()), key->left());
      for (int i = 0; i < 2; i++) closed += static_cast<char>(end[i] ^ mask_);
      Reader cut(closed);
      if (collation_->restore(&cut, mask_, to, text.size(), &n)) break;
      n = 0;
    }
  }
  if (!whole && n == 0) return false;
  key->pass(key->left() - (whole ? rest.left() : 0));
  *out = charset_ == &my_charset_bin ? hex_of(to, n) : quoted(text.data(), n);
  if (!whole && n <= kShown) *out += "...";
  return true;
}

bool KeyPart::words_of_fixed(Reader *key, std::string *out) const {
  const uchar *from = key->take(form_bytes_);
  if (!from) return false;
  uchar number[8] = {};
  std::string turned(reinterpret_cast<const char *>(from), form_bytes_);
  for (char &byte : turned) byte = static_cast<char>(byte ^ mask_);
  const uchar *bytes = reinterpret_cast<const uchar *>(turned.data());
  switch (form_) {
    case Form::kInteger:
      restore_integer(from, number, bytes_, turn_);
      *out = integer_of(number, bytes_, type_, signed_);
      return true;
    case Form::kReal:
      restore_real(from, number, bytes_, turn_);
      *out = real_of(number, bytes_);
      return true;
    case Form::kBits:
      *out = std::to_string(high_first(bytes, form_bytes_));
      return true;
    default:
      break;
  }
  switch (type_) {
    case MYSQL_TYPE_DATETIME2:
      *out = datetime_of(bytes, form_bytes_, decimals_);
      return true;
    case MYSQL_TYPE_TIME2:
      *out = time_of(bytes, form_bytes_, decimals_);
      return true;
    case MYSQL_TYPE_TIMESTAMP2:
      *out = timestamp_of(bytes, form_bytes_, decimals_);
      return true;
    case MYSQL_TYPE_NEWDECIMAL:
      *out = decimal_of(bytes, precision_, decimals_);
      return true;
    case MYSQL_TYPE_BIT:
      *out = std::to_string(high_first(bytes, form_bytes_));
      return true;
    default:
      *out = hex_of(bytes, form_bytes_);
      return true;
  }
}

}  // namespace shale_sql
