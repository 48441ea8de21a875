// Keys: how the columns of an index become bytes that compare as the columns do, and back.
//
// Each part is a byte that says NULL or not, if it can be NULL, and a form of the value that
// compares as bytes and is the prefix of no other; of a descending part all bits are turned. A
// secondary index has the primary key after its own columns, except a unique one without a NULL: there
// the primary key is in the value only. The value of an entry of a secondary index has what
// the key does not give back, so that each column of the index can be read without the row. The
// hidden primary key is 8 bytes, the highest first.
#pragma once

#include "table_def.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct TABLE;
class Field;
typedef unsigned char uchar;

namespace shale_sql {

class KeyPart;  // one column's form, chosen by type and collation when a table is opened

class KeyCodec {
 public:
  // Of index `index` of the table's definition; MAX_KEY is the hidden primary key. `primary` is the
  // codec of the primary key, nullptr for the primary key itself. Fields are those of `table`.
  KeyCodec(TABLE *table, unsigned index, const KeyCodec *primary);
  ~KeyCodec();

  // The index's own columns of a row in `record` (record[0], record[1] or another buffer of that
  // form). `has_null`, if asked for: whether one of them is NULL, so that it is like no other.
  void pack_columns(const uchar *record, std::string *out, bool *has_null = nullptr) const;
  // The same of a search tuple in the server's form; `parts` are those that it has, from the
  // first on. What comes out is a prefix of the keys of all rows that have these values. A tuple of a
  // secondary index may go on into the primary key (the server's extended keys).
  void pack_tuple(const uchar *tuple, unsigned long parts, std::string *out) const;
  // Completes what pack_columns gave to the key of the entry of a row whose primary key is `primary`.
  void append_primary(std::string_view primary, bool has_null, std::string *key) const;
  // The value of a secondary index's entry.
  void pack_value(const uchar *record, std::string_view primary, bool has_null,
                  std::string *out) const;

  // The primary key within an entry of a secondary index; false: the entry is damaged.
  bool primary_of(std::string_view key, std::string_view value, std::string_view *primary) const;
  // Puts back into `record` the columns of an entry: of a secondary index all its own and those of
  // the primary key; of the primary key those that can be restored. False: the entry is damaged.
  bool unpack(std::string_view key, std::string_view value, uchar *record) const;

  // Whether the key alone gives the whole column back (the row's value then leaves it out). Only asked of the
  // primary key.
  bool restores(const Field *field) const;
  // Whether entries have the whole of each of the index's columns (no prefix parts), as an index-only read needs.
  bool covers() const;
  // As covers, of one part of the index's definition.
  bool covers_part(unsigned part) const;
  // The longest key that rows can have, in bytes.
  size_t max_bytes() const;
};

// `key` becomes the smallest that is above all keys that begin with it; false: there is none.
bool next_after_prefix(std::string *key);

}  // namespace shale_sql
