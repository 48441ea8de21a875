// Makes and drops a table's trees, so that a crash between that and the change of the catalog
// leaves trees without a table at most.

#include "ddl/table_trees.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/trees.h"
#include "tables/shared_table.h"
#include "txn/trx.h"

namespace shale_sql {

namespace {

std::vector<std::string> tree_names(const TableDef &def) {
  std::vector<std::string> names;
  for (const IndexDef &index : def.indexes) names.push_back(tree_name(def.table_id, index.id));
  return names;
}

}  // namespace

Error make_table_trees(const TableDef &def, std::vector<TreeHandle> *trees) {
  return create_trees(tree_names(def), def.codec, def.dictionary, trees);
}

void drop_table_trees(const TableDef &def) {
  Trx *trx = def.temporary && current_thd != nullptr ? Trx::find(current_thd) : nullptr;
  std::vector<std::string> names = tree_names(def);
  if (trx != nullptr) {
    trx->forget_table(def.table_id);
    for (const std::string &name : names) trx->forget_tree(name);
  }
  drop_trees(names);
}

Error drop_table(const std::string &path, const TableDef &def) {
  if (Error error = engine().catalog.erase(path, def)) return error;
  SharedTable::note_gone(path);
  drop_table_trees(def);
  return 0;
}

}  // namespace shale_sql
