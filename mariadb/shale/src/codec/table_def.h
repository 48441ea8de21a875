// What the catalog keeps of a table: its trees and the forms its rows have had. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shale_sql {

// A column as rows store it. Generated columns that are not stored have none.
struct ColumnDef {
  uint32_t id = 0;           // never used again for another column of the table
  bool nullable = false;
  uint32_t fixed_bytes = 0;  // 0: of any length, stored with its length
  bool in_key = false;       // the primary key gives it back: it is not in the row's value
};

// What rows that were written before a column existed have for it.
struct InstantDefault {
  uint32_t column_id = 0;
  bool is_null = false;
  std::string value;  // as in a row, without its length
};

// The first byte of a part's form. Of kText follow the collation's number, the characters of a CHAR
// whose pads are in keys (else 0), and the levels (Collation::describe); of the others how many
// bytes they have. All of this is on disk.
enum class FormClass : char {
  kSigned = 'i',    // the highest byte first, the sign turned
  kUnsigned = 'u',  // the highest byte first
  kReal = 'r',
  kBytes = 'b',   // as rows have them, which is how InnoDB compares them
  kBinary = 'v',  // bytes of any number
  kText = 't',    // weights of a collation
  kSorted = 's',  // of a type of a plugin, whose name follows
  kCell = 'c',    // of a SPATIAL index (cells.h)
};

// How one column is within the keys of an index. `kind` and `form` are compared with those of
// another part (key_shape.h), without the server's definition of either table.
struct PartDef {
  std::string column;        // its name
  bool nullable = false;     // a byte that says NULL or not comes before its form
  bool descending = false;   // all bits are turned, that byte's too
  bool whole = false;        // not the beginning of the column only
  std::string kind;          // what InnoDB compares to accept a foreign key
  std::string form;          // two parts of one form have the same bytes for the same value
  uint32_t fixed_bytes = 0;  // of the form, if all values have as many; 0: it ends as texts do

  bool operator==(const PartDef &other) const {
    return column == other.column && nullable == other.nullable &&
           descending == other.descending && whole == other.whole && kind == other.kind &&
           form == other.form && fixed_bytes == other.fixed_bytes;
  }
};

// What an index of words takes of texts. It is kept with the index, whose entries are found again
// by it, whatever the variables are set to later.
struct WordRules {
  uint32_t min_chars = 3, max_chars = 84;
  bool stopwords = true;  // words of a list are left out: the engine's, or one of a table
  // That one, in the order of a collation; 0: the engine's.
  uint32_t stopword_collation = 0;
  std::vector<std::string> own_stopwords{};

  bool operator==(const WordRules &other) const {
    return min_chars == other.min_chars && max_chars == other.max_chars &&
           stopwords == other.stopwords && stopword_collation == other.stopword_collation &&
           own_stopwords == other.own_stopwords;
  }
};

// Whether a part is that of a SPATIAL index.
inline bool is_of_cells(const PartDef &part) {
  return !part.form.empty() && part.form[0] == static_cast<char>(FormClass::kCell);
}

struct IndexDef {
  uint32_t id = 0;      // never used again; the tree's name is made of it
  std::string name;     // as in the table's definition
  bool unique = false;  // no two rows have the same values, unless one is NULL
  // Of the index's own columns, in order. None: the hidden primary key, or a definition of format 1
  // until the table is next opened.
  std::vector<PartDef> parts{};
  bool has_words = false;  // a FULLTEXT index
  WordRules words{};       // of such an index
};

// Of a system-versioned table, the column that says until when a row was the current one.
struct RowEnd {
  std::string column;      // its name; empty: the table keeps no rows of the past
  uint32_t column_id = 0;  // as in ColumnDef
};

struct TableDef {
  uint64_t table_id = 0;
  // The columns of each form of row, in the order in which they are stored; the last is the one
  // that is written. A row begins with the number of its form.
  std::vector<std::vector<ColumnDef>> forms;
  std::vector<InstantDefault> defaults;
  // The primary key (the hidden one, if the table has none), then the others.
  std::vector<IndexDef> indexes;
  bool hidden_key = false;
  bool temporary = false;  // does not outlive the server
  bool discarded = false;  // its rows are gone, and others are to be imported
  uint32_t next_column_id = 0;
  uint32_t next_index_id = 0;
  std::string codec;  // of the trees, as the table option says; empty: the default
  bool dictionary = false;  // whether they may have compression dictionaries
  std::string version;  // the server's id of the definition (of its .frm)
  RowEnd row_end{};
};

}  // namespace shale_sql
