// Rows: the value of an entry of the primary key.
//
// A varint that says which form (TableDef::forms) the row has; a bit for each column that can be
// NULL, the lowest of the first byte first; then the columns that are not NULL: those of fixed
// length as in the server's record, others with their length (a varint) before them. CHAR and
// BINARY lose the padding at their end. Columns that the primary key gives back are not in it. Rows
// of earlier forms are read by that form: columns that have gone are passed over, those that came
// later have their default.
#pragma once

#include "codec/key_codec.h"
#include "codec/table_def.h"

typedef struct st_bitmap MY_BITMAP;

namespace shale_sql {

class Column;

class RowCodec {
 public:
  // `primary` is the codec of the primary key of the same table. The last form of `def` has one
  // column for each field that is stored, in their order.
  RowCodec(TABLE *table, const KeyCodec *primary, std::shared_ptr<const TableDef> def);
  ~RowCodec();

  // The columns of the first form of a new table, numbered from 0 on.
  static std::vector<ColumnDef> columns_of(TABLE *table, const KeyCodec *primary);
  // Whether rows of the definition have the table's columns.
  static bool fits(TABLE *table, const KeyCodec *primary, const TableDef &def);
  // One column, without its number (for ALTER TABLE).
  static ColumnDef column_of(Field *field, const KeyCodec *primary);
  // The value of a field in `record`, which has the table's defaults, as rows would have it.
  static InstantDefault default_of(TABLE *table, Field *field, const uchar *record);

  void pack(const uchar *record, std::string *out) const;
  // Whether two records have the same in all columns that are stored.
  bool same(const uchar *record, const uchar *other) const;
  // Whether it takes the value to give the columns of `wanted`: the key gives the others back.
  bool needs_value(const MY_BITMAP *wanted) const;
  // Puts the columns of `wanted` (nullptr: all) and what the key gives back into `record`. Blobs
  // point into `value`, which must live as long as the record is used, or into a default. A value
  // without data is one that was not read: the record gets what the key gives back. False: the row
  // is damaged.
  bool unpack(std::string_view key, std::string_view value, const MY_BITMAP *wanted,
              uchar *record) const;

 private:
  // A column of a form, and where it goes.
  struct Stored {
    uint32_t fixed_bytes;
    bool nullable;
    const Column *column;   // nullptr: has gone
    uint32_t field_index;
  };
  // A column that rows of a form do not have.
  struct Later {
    const Column *column;
    uint32_t field_index;
    const InstantDefault *value;  // nullptr: there is none, the table's definition is damaged
  };
  struct Form {
    std::vector<Stored> stored;
    std::vector<Later> later;
    uint32_t null_bytes = 0;
  };

  void make_form(const std::vector<ColumnDef> &columns, Form *form) const;
  bool store_defaults(const Form &form, const MY_BITMAP *wanted, uchar *record) const;

  const KeyCodec *primary_;
  std::shared_ptr<const TableDef> def_;
  std::vector<Column> columns_;         // of the last form
  std::vector<uint32_t> field_index_;   // of each of them
  std::vector<Form> forms_;
};

}  // namespace shale_sql
