// One column of a table as rows store it.
#pragma once

#include "codec/bytes.h"
#include "codec/table_def.h"

struct TABLE;
struct charset_info_st;
class Field;

namespace shale_sql {

class Column {
 public:
  Column(const TABLE *table, const Field *field);

  // Bytes of the value; 0: of any length.
  uint32_t fixed_bytes() const { return fixed_bytes_; }
  bool nullable() const { return null_bit_ != 0; }
  bool is_null(const uchar *record) const { return null_bit_ && record[null_offset_] & null_bit_; }
  void set_not_null(uchar *record) const { record[null_offset_] &= static_cast<uchar>(~null_bit_); }

  // NULL, with the table's default below it: what is there is the same in all such rows.
  void clear(uchar *record) const;
  bool same(const uchar *record, const uchar *other) const;

  // Appends the value, with its length if that is not fixed.
  void append(const uchar *record, std::string *out) const;
  // Puts a value back, which comes without its length. A blob then points to `from`. False: it
  // has not the right size.
  bool store(const uchar *from, size_t n, uchar *record) const;

 private:
  enum class Form : uint8_t { kFixed, kBits, kPadded, kVarchar, kBlob };

  size_t padded_bytes(const uchar *text) const;
  size_t value_of(const uchar *record, const uchar **value) const;

  Form form_ = Form::kFixed;
  uchar null_bit_ = 0;
  uchar length_bytes_ = 0;  // that the record has before a text
  uchar bit_offset_ = 0;    // of kBits: of bits among those that say NULL
  uchar bit_count_ = 0;
  uint32_t null_offset_ = 0;
  uint32_t bit_byte_ = 0;
  uint32_t offset_ = 0;
  uint32_t bytes_ = 0;  // in the record: all, or the most that a text can have
  uint32_t fixed_bytes_ = 0;
  const charset_info_st *charset_ = nullptr;
  const uchar *defaults_ = nullptr;  // a record
};

}  // namespace shale_sql
