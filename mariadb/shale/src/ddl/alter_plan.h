// What ALTER TABLE makes of a table's definition, if it can be done without copying the table.
#pragma once

#include "codec/table_def.h"

#include <string>
#include <vector>

struct TABLE;
class Alter_inplace_info;

namespace shale_sql {

struct AlterPlan {
  const char *refusal = nullptr;  // why the table has to be copied
  TableDef def;                   // of after
  std::vector<unsigned> added;    // indexes of the altered table that have to be built
  std::vector<uint32_t> dropped;  // ids of those that go
};

AlterPlan plan_alter(TABLE *table, TABLE *altered, Alter_inplace_info *info, const TableDef &was);

}  // namespace shale_sql
