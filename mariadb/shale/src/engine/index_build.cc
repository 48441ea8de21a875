// Giving entries to a build, and what becomes of its tree.

#include "engine/index_build.h"

#include "server.h"

#include "engine/trees.h"

namespace shale_sql {

// What is not finished drops its tree itself.
IndexBuild::~IndexBuild() {
  tree_.reset();
  if (finished_ && !kept_) drop_trees({name_});
}

Error IndexBuild::add(std::string_view key, std::string_view value) {
  return consume_error(
      shale_build_add(build_.get(), key.data(), key.size(), value.data(), value.size()));
}

Error IndexBuild::finish() {
  if (Error error = consume_error(shale_build_finish(build_.get(), nullptr))) return error;
  // Freed by that. After an error it stays, since others may write to the tree.
  static_cast<void>(build_.release());
  finished_ = true;
  return 0;
}

}  // namespace shale_sql
