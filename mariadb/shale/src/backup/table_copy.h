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
#include <functional>
#include <string>
#include <string_view>
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

// Gives a tree's entries in blocks, each with the tree's number; adds to how many there are.
// HA_ERR_ABORTED_BY_USER: the statement was killed.
using TakeBlock = std::function<Error(const std::string &block)>;
Error read_tree(THD *thd, const shale_snapshot *at, const shale_tree *tree, size_t place,
                const TakeBlock &take, uint64_t *entries);

// Fills new trees with blocks of entries, one after the other.
class TreeFiller {
 public:
  explicit TreeFiller(const std::vector<TreeHandle> &trees)
      : trees_(trees), counts_(trees.size()) {}

  // `wrong` stays empty, or says what is wrong with the block.
  Error add(std::string_view block, std::string *wrong);
  // Ends the last tree, after all blocks.
  Error finish();
  // Of entries, of each tree.
  const std::vector<uint64_t> &counts() const { return counts_; }

 private:
  Error add_entry(std::string_view key, std::string_view value);

  const std::vector<TreeHandle> &trees_;
  size_t place_ = 0;
  IngestHandle ingest_;
  std::string last_;              // the key of the entry before
  std::vector<uint64_t> counts_;  // of entries
};

// What a table is made of.
class TableSource {
 public:
  virtual ~TableSource() = default;

  // What the table is. Any error says which file, and what is wrong with it, here and below.
  virtual Error begin(TableCopy *table) = 0;
  // Puts the entries into new trees, as many as the definition has indexes. All of them have been
  // looked at when there is no error.
  virtual Error fill(THD *thd, const std::vector<TreeHandle> &trees) = 0;
};

// A file that write_table has written.
class TableReader : public TableSource {
 public:
  explicit TableReader(std::string file) : file_(std::move(file)) {}

  Error begin(TableCopy *table) override;
  Error fill(THD *thd, const std::vector<TreeHandle> &trees) override;

 private:
  BlockReader file_;
};

}  // namespace shale_sql
