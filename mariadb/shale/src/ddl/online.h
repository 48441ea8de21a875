// Which indexes are built while others write to the table, and how those see them.
#pragma once

#include "server.h"

#include "ddl/alter_plan.h"

#include <vector>

namespace shale_sql {

// Why nothing may be written while the new indexes are built; nullptr: others may write.
const char *why_alone(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                      const AlterPlan &plan);
// The parts of a new index over the columns of the table as it is. There is no reason as above.
std::vector<KEY_PART_INFO> parts_over(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                                      unsigned number);

}  // namespace shale_sql
