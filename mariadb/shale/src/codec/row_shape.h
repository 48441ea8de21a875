// A column of a row, by the definition in the catalog alone.
#pragma once

#include "codec/table_def.h"

#include <string_view>

namespace shale_sql {

// The column's bytes in the value of an entry of the primary key. False: it is NULL, the row has no
// such column, or it is damaged.
bool column_of_row(std::string_view row, const TableDef &def, uint32_t column_id,
                   std::string_view *bytes);

}  // namespace shale_sql
