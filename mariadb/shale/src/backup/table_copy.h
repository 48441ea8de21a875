// One table as a file, which another server makes a table of.
//
// Its first block says what the table is. The blocks of entries have those of one tree after the
// other, in the order of their keys: the number of the tree, then keys and values, each with its
// length before it. The last block has how many entries each tree has.
#pragma once

#include "backup/block_file.h"
#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/handles.h"

#include <cstdint>
#include <string>
#include <vector>

class THD;

namespace shale_sql {

struct TableCopy {
  std::string schema;        // schema_words
  TableDef def;              // by which rows and keys are read
  uint64_t next_number = 0;  // the next automatic one, and the next hidden key; 0: none yet
  uint64_t next_hidden = 0;
};

// Writes what the trees have that is committed. HA_ERR_ABORTED_BY_USER: the statement was killed,
// and there is no file, as after any other error.
Error write_table(THD *thd, const std::string &file, const TableCopy &table,
                  const std::vector<TreeHandle> &trees);

// Reads one. Any error says which file, and what is wrong with it.
class TableReader {
 public:
  explicit TableReader(std::string file) : file_(std::move(file)) {}

  // What the table is.
  Error begin(TableCopy *table);
  // Puts the entries into new trees, as many as the definition has indexes. All of the file has
  // been looked at when there is no error.
  Error fill(THD *thd, const std::vector<TreeHandle> &trees);

 private:
  BlockReader file_;
};

}  // namespace shale_sql
