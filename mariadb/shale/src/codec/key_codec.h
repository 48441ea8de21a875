// Keys: how the columns of an index become bytes that compare as the columns do, and back.
//
// Each part is a byte that says NULL or not, if it can be NULL, and a form of the value that
// compares as bytes and is the beginning of no other; of a descending part all bits are turned. A
// secondary index has the primary key after its own columns, except a unique one without a NULL:
// there the primary key is in the value only. The hidden primary key is 8 bytes, the highest first.
//
// The value of an entry of a secondary index has what the key does not give back, so that each
// column of the index, and of the primary key, can be read without the row:
//
//     of a unique index: varint of the primary key's bytes (0: it is in the key), the primary key
//     of each column whose form in the key has lost it: varint of its bytes, the value
//     of a SPATIAL index: the rectangle (cells.h); its key begins with a cell, which says less
//     then, unless all of them are 0, of each column that lost a little, a varint: of a text how
//     many spaces are at its end, of a FLOAT or DOUBLE 1 for -0
#pragma once

#include "codec/bytes.h"
#include "codec/table_def.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct TABLE;
struct st_key;
class Field;

namespace shale_sql {

class Geometries;
class KeyPart;  // one column's form, chosen by type and collation when a table is opened

class KeyCodec {
 public:
  // Of index `index` of the table's definition; MAX_KEY is the hidden primary key. `primary` is the
  // codec of the primary key, nullptr for the primary key itself; it must live as long as this.
  // Fields are those of `table`.
  KeyCodec(TABLE *table, unsigned index, const KeyCodec *primary);
  // Of an index over columns of the table that need not be in its definition; nullptr is the hidden
  // primary key.
  KeyCodec(TABLE *table, const st_key *index, const KeyCodec *primary);
  ~KeyCodec();

  // The index's own columns of a row in `record` (record[0], record[1] or another buffer of that
  // form). `has_null`, if asked for: whether one of them is NULL, so that it is like no other.
  void pack_columns(const uchar *record, std::string *out, bool *has_null = nullptr) const;
  // The same of a search tuple in the server's form; `parts` are those that it has, from the
  // first on. What comes out is a prefix of the keys of all rows that have these values. A tuple of
  // a secondary index may go on into the primary key (the server's extended keys); HA_WHOLE_KEY is
  // the index's own parts only.
  void pack_tuple(const uchar *tuple, unsigned long parts, std::string *out) const;
  // Completes what pack_columns gave to the key of the entry of a row whose primary key is
  // `primary`.
  void append_primary(std::string_view primary, bool has_null, std::string *key) const;
  // The value of a secondary index's entry.
  void pack_value(const uchar *record, std::string_view primary, bool has_null,
                  std::string *out) const;

  // The primary key within an entry of a secondary index; false: the entry is damaged.
  bool primary_of(std::string_view key, std::string_view value, std::string_view *primary) const;
  // Puts back into `record` the columns of an entry: of a secondary index all its own and those of
  // the primary key; of the primary key those that can be restored. False: the entry is damaged.
  // The primary key in an entry is not looked at if the index has all of its columns; `primary`,
  // if asked for, is that of a secondary index's entry, as `primary_of` gives it.
  bool unpack(std::string_view key, std::string_view value, uchar *record,
              std::string_view *primary = nullptr) const;

  // Where each of the index's own columns ends within a key. False: the key is damaged.
  bool part_ends(std::string_view key, std::vector<size_t> *ends) const;

  // Whether the key alone gives the whole column back (the row's value then leaves it out). Only
  // asked of the primary key.
  bool restores(const Field *field) const;
  // Whether entries have the whole of each of the index's columns (no prefix parts), as an
  // index-only read needs. Of the primary key: whether the key alone has them.
  bool covers() const;
  // As covers, of one part of the index's definition; those behind the user's are the primary
  // key's.
  bool covers_part(unsigned part) const;
  // Whether entries of a secondary index have the whole of a column, as its own or as one of the
  // primary key's.
  bool gives(unsigned field) const;
  // Whether they have the beginning of it, as a part of such a key.
  bool begins(unsigned field) const;
  // The longest key that rows can have, in bytes.
  size_t max_bytes() const;

  // Of a SPATIAL index its column; else nullptr.
  const Geometries *geometries() const { return geometries_.get(); }

 private:
  // Where a column of the primary key is in a search tuple of this index.
  struct PrimaryInTuple {
    unsigned part = 0;  // of the server's definition, behind the user's parts or one of them
    bool known = false;
  };

  void find_primary_parts(const st_key &index);
  bool split(std::string_view key, std::string_view value, std::string_view *own,
             std::string_view *primary, Reader *rest) const;

  std::vector<KeyPart> parts_;
  std::unique_ptr<Geometries> geometries_;  // instead of parts
  const KeyCodec *primary_;
  bool unique_ = false;
  bool hidden_ = false;
  size_t primary_bytes_ = 0;             // of the primary key, if all are of one length
  bool has_primary_ = false;  // the columns of the primary key are all among the index's own
  std::vector<PrimaryInTuple> primary_in_tuple_;
  std::vector<size_t> tuple_offset_;     // of each part of the server's definition
  std::vector<const KeyPart *> kept_;    // columns whose value is kept: own, then the primary key's
  std::vector<const KeyPart *> counted_;  // columns of which a number is kept
};

}  // namespace shale_sql
