// information_schema.SHALE_TREES and SHALE_LEVELS: what SHOW ENGINE STATUS says, to be queried.
#pragma once

namespace shale_sql {

int start_trees(void *place);
int start_levels(void *place);

}  // namespace shale_sql
