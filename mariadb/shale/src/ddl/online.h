// What is built while others write to the table, and how those see it.
#pragma once

#include "server.h"

#include "ddl/alter_plan.h"

#include <vector>

namespace shale_sql {

// Why nothing may be written while the statement does its work; nullptr: others may write.
const char *why_alone(Alter_inplace_info *info, const AlterPlan &plan);
// Whether writers, who have the table's old definition, can make the entries of all new indexes,
// and need not look for duplicates. Else they tell which rows they change.
bool writers_make_entries(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                          const AlterPlan &plan);
// The parts of a new index over the columns of the table as it is. Writers make
// its entries.
std::vector<KEY_PART_INFO> parts_over(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                                      unsigned number);

}  // namespace shale_sql
