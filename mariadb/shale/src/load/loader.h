// Fills trees that nobody sees yet, in bounded memory: entries that come in the order of their keys
// go to a bulk load at once, others through a sorter. So does what goes to a build.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"
#include "engine/index_build.h"
#include "load/sorter.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

class THD;

namespace shale_sql {

class Pace;

// One tree.
class TreeLoader {
 public:
  // `sorted`: entries are likely to come in order.
  TreeLoader(shale_tree *tree, bool sorted, size_t memory_bytes);
  // Gives them to a build, which it finishes.
  TreeLoader(IndexBuild *build, size_t memory_bytes);

  // HA_ERR_FOUND_DUPP_KEY if it is the key of the entry before; other equal keys are found at the
  // end.
  Error add(std::string_view key, std::string_view value);
  // Puts into the tree what is not there yet. After HA_ERR_FOUND_DUPP_KEY `key` and `value` are the
  // entry that is one too many. `pace`: of who fills trees while others write, or nullptr.
  Error finish(THD *thd, Pace *pace);

  const std::string &key() const { return key_; }
  const std::string &value() const { return value_; }

 private:
  Error begin();
  Error end();
  Error add_sorted(std::string_view key, std::string_view value);
  Error merge(THD *thd, Pace *pace);
  Error in_tree(shale_scan *scan, std::string_view key, bool *found);

  shale_tree *tree_ = nullptr;
  IndexBuild *build_ = nullptr;
  bool sorted_ = false;
  size_t memory_bytes_;
  IngestHandle ingest_;
  std::unique_ptr<Sorter> sorter_;
  bool wrote_ = false;     // the tree has entries of an earlier load
  bool has_last_ = false;
  std::string key_, value_;  // key_: of the last entry, while they come in order
};

// The trees of a table, the primary key's first.
struct TableLoader {
  std::vector<TreeLoader> trees;
};

// Bytes that sorting may take for each of `trees` trees that are filled at once.
size_t sort_memory_of_each(THD *thd, size_t trees);

}  // namespace shale_sql
