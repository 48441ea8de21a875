// The server's definition of a table (its .frm file) beside the catalog's.
#pragma once

#include "codec/table_def.h"

#include <string>

struct TABLE;

namespace shale_sql {

// What of the table is otherwise in the catalog, as in "another index k"; empty:
// nothing by which rows or entries would be read. Indexes whose parts the catalog does not know yet
// are taken for the table's.
std::string difference(TABLE *table, const TableDef &def);

}  // namespace shale_sql
