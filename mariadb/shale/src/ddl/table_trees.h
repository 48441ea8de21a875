// The trees of a table: made before it is in the catalog, dropped when it has gone from there.
#pragma once

#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/handles.h"

#include <string>
#include <vector>

namespace shale_sql {

Error make_table_trees(const TableDef &def, std::vector<TreeHandle> *trees);
// A temporary table takes what its session's transaction has written there with it. Of other tables
// a commit that finds a tree gone is to fail.
void drop_table_trees(const TableDef &def);
// Removes a table from the catalog, then its trees.
Error drop_table(const std::string &path, const TableDef &def);

}  // namespace shale_sql
