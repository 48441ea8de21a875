// One column of an index: the form of its values in keys, chosen by type and collation.
#pragma once

#include "server.h"

#include "codec/bytes.h"
#include "codec/collation.h"
#include "codec/table_def.h"

#include <memory>
#include <string>
#include <vector>

struct TABLE;
class Field;

namespace shale_sql {

class KeyPart {
 public:
  // A part of an index over columns of the table, by `fieldnr`. The table's definition need not
  // have the index.
  KeyPart(TABLE *table, const KEY_PART_INFO &info);

  // Appends the column's value in `record`. True: it is NULL.
  bool pack(const uchar *record, std::string *out) const;
  // The same of the part's bytes in a search tuple.
  void pack_tuple(const uchar *tuple, std::string *out) const;
  // The bytes of a tuple that the part takes.
  size_t tuple_bytes() const { return tuple_bytes_; }

  // Passes over the part.
  bool skip(Reader *key) const;
  // As skip, and puts into `record` what the part gives back, NULL or not as well, if
  // it is not a beginning of the column only. `is_null` is set.
  bool unpack(Reader *key, uchar *record, bool *is_null) const;

  // What the form does not tell of the value goes to the values of secondary indexes.
  enum class Lost {
    kNothing,
    kMinusZero,  // of a number: whether it is -0
    kSpaces,     // how many spaces are at its end
    kValue,      // all
    kPrefix,     // all, of a part that has only the beginning of a column: not kept at all
  };
  Lost lost() const { return lost_; }
  // For kValue: appends the value (which is not NULL) with its length; puts it back.
  void pack_lost(const uchar *record, std::string *out) const;
  bool unpack_lost(Reader *value, uchar *record) const;
  // For kMinusZero and kSpaces: a number that is mostly 0; puts it back.
  uint64_t lost_count(const uchar *record) const;
  bool restore_lost_count(uint64_t count, uchar *record) const;

  // All that a definition says of the part, but for its kind.
  PartDef describe() const;

  // The value in words, for messages; false: not all of it is there. It needs no table.
  bool words(Reader *key, std::string *out) const;

  bool is_null(const uchar *record) const {
    return null_bit_ && (record[null_offset_] & null_bit_);
  }
  bool nullable() const { return null_bit_ != 0; }
  unsigned field_index() const { return field_index_; }
  // Bytes in a key, if all values have as many; else 0.
  size_t fixed_bytes() const { return null_bit_ ? 0 : form_bytes_; }
  size_t max_bytes() const { return max_bytes_; }

 private:
  enum class Form : uint8_t {
    kInteger,
    kReal,
    kBytes,     // as in the record
    kBits,      // BIT with bits among those that say NULL
    kChar,      // text of one length, with spaces at its end
    kVarchar,   // text with its length
    kBlob,      // text elsewhere
    kSorted,    // of a type that is not known: as the server sorts it
  };

  void choose_form(unsigned part_bytes, bool whole);
  void choose_text(Form form, unsigned part_bytes, bool whole);
  void set_integer(unsigned n, bool is_signed);
  void append_text(const uchar *text, size_t n, std::string *out) const;
  void append_fixed(const uchar *from, std::string *out) const;
  void append_sorted(uchar *record, std::string *out) const;
  void sort_tuple(const uchar *tuple, std::string *out) const;
  bool restore_text(Reader *key, uchar *record) const;
  void value_of(const uchar *record, const uchar **text, size_t *n) const;
  bool words_of_text(Reader *key, std::string *out) const;
  bool words_of_fixed(Reader *key, std::string *out) const;
  FormClass form_class() const;

  Form form_ = Form::kBytes;
  Lost lost_ = Lost::kNothing;
  uchar mask_ = 0;            // 0xff in a descending part
  uchar null_bit_ = 0;        // 0: is never NULL
  uchar length_bytes_ = 0;    // that the record has before a text
  uchar bit_offset_ = 0;      // of kBits
  uchar bit_count_ = 0;
  bool whole_ = false;        // not the beginning of the column only
  bool cut_ = false;          // text may have more characters than belong to the part
  bool signed_ = false;
  enum_field_types type_ = MYSQL_TYPE_NULL;  // as records have it
  uchar decimals_ = 0, precision_ = 0;
  unsigned null_offset_ = 0;
  unsigned bit_byte_ = 0;     // of kBits: where they are in the record
  unsigned offset_ = 0;       // of the column in the record
  unsigned bytes_ = 0;        // of a number, or that a text can have in the record
  unsigned tuple_text_ = 0;   // bytes of the part in a tuple, without NULL and length
  unsigned chars_ = 0;        // that belong to the part
  unsigned field_index_ = 0;
  size_t tuple_bytes_ = 0;
  size_t form_bytes_ = 0;      // in a key, without the one for NULL; 0: of any length
  size_t max_bytes_ = 0;
  uint64_t turn_ = 0;         // xored to a number
  std::unique_ptr<Collation> collation_;
  const charset_info_st *charset_ = nullptr;
  Field *field_ = nullptr;
  TABLE *table_ = nullptr;
};

}  // namespace shale_sql
