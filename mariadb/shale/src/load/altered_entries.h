// What the new trees of an ALTER TABLE in place have of a row.
#pragma once

#include "server.h"

#include "codec/key_codec.h"
#include "codec/many_codec.h"
#include "codec/row_codec.h"
#include "engine/errors.h"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// The statement, and which indexes of the altered table are filled.
struct Alteration {
  THD *thd;
  TABLE *table, *altered;
  Alter_inplace_info *info;
  std::shared_ptr<const TableDef> was, is;
  // Rows are stored anew, and the first of `indexes` is the primary key (MAX_KEY: the hidden one).
  bool rebuilds;
  std::vector<unsigned> indexes;
  // Of each of them that has many entries of a row, how these are made; nullptr: of the others.
  std::vector<std::shared_ptr<const ManyCodec>> many;
};

// An entry, in the tree of one of the indexes; or `many` of one that has them.
struct AlteredEntry {
  std::string key, value;
  ManyEntries many;
  bool is_unique = false;  // no other entry may have its key
};

class AlteredEntries {
 public:
  explicit AlteredEntries(const Alteration &alteration);
  ~AlteredEntries();

  // Errors that are there before the first row: a type that cannot become another.
  Error check();
  // The entries of a row as it is stored now, by index. `comes`: others than that it has had, so
  // the new table's constraints are asked, and warnings are made. The row is in the altered
  // table's record then, and needs `value`. None: the row is of the past, which the altered table
  // does not keep.
  Error of_row(std::string_view key, std::string_view value, bool comes,
               std::vector<AlteredEntry> *entries);
  // Puts a row that is stored as the altered table has it into its record.
  Error show(std::string_view key, std::string_view value);
  // The primary key that an entry leads to, as rows are stored anew if they are; false: damaged.
  bool primary_of(size_t place, std::string_view key, std::string_view value,
                  std::string_view *primary) const;
  // Whether entries of rows may be in each other's way.
  bool has_unique() const { return has_unique_; }
  bool has_many(size_t place) const { return alter_.many[place] != nullptr; }

 private:
  void map_columns();
  Error convert(bool comes);
  bool is_left_out() const;
  Error compute();

  const Alteration alter_;
  KeyCodec primary_;
  RowCodec rows_;
  std::vector<std::unique_ptr<KeyCodec>> codecs_;  // by place; nullptr: the primary key's, many
  std::vector<bool> unique_;
  // Of a table whose rows are stored anew: how they were stored, and how columns become others.
  std::unique_ptr<KeyCodec> old_primary_;
  std::unique_ptr<RowCodec> old_rows_;
  std::deque<Copy_field> copies_;
  std::vector<std::pair<Field *, Field *>> kept_;  // whose bytes stay
  bool has_defaults_ = false;
  bool is_checked_ = false;  // whether rows are held against the constraints
  bool has_unique_ = false;
  // The generated columns that are needed, in the order in which they are computed.
  std::vector<Field *> computed_;
};

}  // namespace shale_sql
