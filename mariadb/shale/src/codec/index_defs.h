// The indexes of a table's definition in the catalog, beside those of the server's definition.
#pragma once

#include "codec/table_def.h"

#include <vector>

struct TABLE;
struct st_key;
struct st_key_part_info;

namespace shale_sql {

// Whether an index has any number of entries of one row (many_codec.h): FULLTEXT.
bool has_many_entries(const st_key &key);
bool has_many_entries(const TABLE *table, unsigned number);

// A part of an index over columns of the table.
PartDef part_of(TABLE *table, const st_key_part_info &info);
// The parts of index `index` of a table; none for MAX_KEY, the hidden primary key.
std::vector<PartDef> parts_of(TABLE *table, unsigned index);

// The entry in `def` of index `number` of the table; nullptr: there is none.
const IndexDef *index_of(const TableDef &def, const TABLE *table, unsigned number);

// Whether the definition has as many indexes as the table, and a primary key as it has.
bool has_indexes_of(const TableDef &def, const TABLE *table);

// Writes into `def` how the indexes of the table look: which are unique, and their parts; and the
// column that ends a row's time, if the table is system-versioned. What the table does not have
// stays as it is.
void describe_indexes(TABLE *table, TableDef *def);

}  // namespace shale_sql
