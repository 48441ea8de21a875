// Making and dropping trees of the database: a table has one for each index.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"

#include <string>
#include <vector>

namespace shale_sql {

// A tree that is there.
Error open_tree(const shale_db *db, const std::string &name, TreeHandle *tree);
// New trees, compressed as `codec` says (empty: by default), with dictionaries where they pay: all,
// or none.
Error create_trees(const std::vector<std::string> &names, const std::string &codec, bool dictionary,
                 std::vector<TreeHandle> *trees);
// A new tree that is filled out of `source`, in the order of its keys, while others write to that
// and to it. HA_ERR_LOCK_WAIT_TIMEOUT: someone has had locks in the source for `wait_millis`.
Error begin_build(const shale_tree *source, const std::string &name, const std::string &codec,
                  bool dictionary, unsigned long wait_millis, BuildHandle *build,
                  TreeHandle *tree);
// Drops trees that no table has any more; one that is not there is none to drop, and of what fails
// the log tells.
void drop_trees(const std::vector<std::string> &names);
// Whether a codec is known, with the reason if not.
bool check_codec(const std::string &codec, std::string *why);

}  // namespace shale_sql
