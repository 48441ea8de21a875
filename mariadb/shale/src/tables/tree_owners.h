// Which table and index a tree is of, by the names that users have given them.
#pragma once

#include <map>
#include <string>

namespace shale_sql {

// Whose a tree is.
struct TreeOwner {
  std::string schema, table;
  std::string index;  // empty: the hidden primary key
};

// By tree; those of the engine itself are in none.
std::map<std::string, TreeOwner> tree_owners();
// `schema`.`table`.`index`, or the tree's own name.
std::string name_of(const std::map<std::string, TreeOwner> &owners, const std::string &tree);

}  // namespace shale_sql
