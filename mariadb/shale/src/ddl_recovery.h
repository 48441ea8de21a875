// After a crash: statements that change tables.
#pragma once

#include <string>

struct handlerton;

namespace shale_sql {

struct TableDef;

void fill_recovery(handlerton *hton);
// Removes a table from the catalog, then its trees (ha_ddl.cc).
int drop_table(const std::string &path, const TableDef &def);

}  // namespace shale_sql
