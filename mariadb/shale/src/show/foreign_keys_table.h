// information_schema.SHALE_FOREIGN_KEYS: the foreign keys of the catalog, also those that wait for
// a parent, or have lost an index.
#pragma once

namespace shale_sql {

int start_foreign_keys(void *place);

}  // namespace shale_sql
