// Definitions of tables as the bytes of their entries of the catalog.
//
// The first byte is the format's number. In format 2 indexes say whether they are unique and have
// their parts, which in definitions of format 1 are empty.
#pragma once

#include "codec/table_def.h"

#include <string>
#include <string_view>

namespace shale_sql {

// In the newest format.
std::string bytes_of(const TableDef &def);
// Of either format; false: the bytes are damaged, or of a later one.
bool parse(std::string_view bytes, TableDef *def);

}  // namespace shale_sql
