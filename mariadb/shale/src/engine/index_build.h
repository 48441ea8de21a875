// The tree of an index that is being built while others write to its table.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"

#include <atomic>
#include <string>
#include <string_view>

class THD;

namespace shale_sql {

// Who adds rows to the table or takes some away writes to the tree too, and holds on to this for as
// long as what it has written is not committed. The tree goes with the last of them, unless it is
// kept: so that no commit finds a tree gone that it has written to.
class IndexBuild {
 public:
  IndexBuild(std::string name, BuildHandle build, TreeHandle tree)
      : name_(std::move(name)), build_(std::move(build)), tree_(std::move(tree)) {}
  IndexBuild(const IndexBuild &) = delete;
  IndexBuild &operator=(const IndexBuild &) = delete;
  ~IndexBuild();

  // An entry of the table as it was at one snapshot since the build has begun, by ascending keys.
  Error add(std::string_view key, std::string_view value);
  // Nothing more is added: the tree is as the table is from now on.
  Error finish();
  // The catalog has the tree.
  void keep() { kept_ = true; }
  const shale_tree *tree() const { return tree_.get(); }
  // A writer has a row that such an index cannot have: the statement that builds it fails.
  void note_lacks_geometry() { lacks_geometry_ = true; }
  bool lacks_geometry() const { return lacks_geometry_; }

 private:
  const std::string name_;
  BuildHandle build_;
  TreeHandle tree_;
  bool finished_ = false;
  bool kept_ = false;
  std::atomic<bool> lacks_geometry_{false};
};

}  // namespace shale_sql
