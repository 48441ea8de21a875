// Definitions of tables as the bytes of their entries of the catalog.
//
// The first byte is the format's number. Definitions of format 1 do not say of their indexes
// whether they are unique, nor what their parts are; those of formats 1 and 2 know of no row end.
// Format 4 has FULLTEXT indexes.
#pragma once

#include "codec/table_def.h"

#include <string>
#include <string_view>

namespace shale_sql {

// In the oldest format that has all of it, from 3 on.
std::string bytes_of(const TableDef &def);
// Of any format; false: the bytes are damaged, or of a later one.
bool parse(std::string_view bytes, TableDef *def);

}  // namespace shale_sql
