// Fills the new indexes of a table that is altered in place.
#pragma once

#include "server.h"

#include "codec/key_codec.h"
#include "codec/row_codec.h"
#include "engine/errors.h"
#include "engine/handles.h"
#include "engine/index_build.h"
#include "load/loader.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

struct NewIndex {
  unsigned number;   // in the altered table's definition
  std::string name;  // of its tree
  // One of the two: a tree beneath what writers write to it meanwhile, or one that is filled while
  // nobody writes.
  std::shared_ptr<IndexBuild> build;
  TreeHandle tree;
};

// Reads the rows of a table as the altered table has them.
class IndexFiller {
 public:
  IndexFiller(THD *thd, TABLE *altered, const TableDef &def, shale_tree *primary,
              std::vector<NewIndex> *indexes);

  // `expected` rows, for the progress that is told.
  Error run(ha_rows expected);
  // The index that has two entries of one key; MAX_KEY: none. Its row is in the record.
  unsigned duplicate() const { return duplicate_; }
  // What SharedTable::count_new_trees was when the rows had been seen.
  uint64_t seen_from() const { return seen_from_; }

 private:
  Error scan(ha_rows expected);
  Error add(std::string_view key, std::string_view value);
  Error take(std::string_view key, std::string_view value);
  Error compute();
  Error show_duplicate(size_t place);

  THD *thd_;
  TABLE *altered_;
  shale_tree *tree_;
  std::vector<NewIndex> &indexes_;
  KeyCodec primary_;
  RowCodec rows_;
  std::vector<std::unique_ptr<KeyCodec>> codecs_;
  std::vector<TreeLoader> loaders_;
  // The virtual columns that the new indexes need, in the order in which they are computed.
  std::vector<Field *> computed_;
  unsigned duplicate_ = MAX_KEY;
  uint64_t seen_from_ = 0;
  std::string key_, value_;
};

}  // namespace shale_sql
