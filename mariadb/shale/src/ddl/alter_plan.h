// What ALTER TABLE makes of a table's definition, if it can be done in place.
#pragma once

#include "codec/table_def.h"

#include <string>
#include <vector>

struct TABLE;
class Alter_inplace_info;

namespace shale_sql {

struct AlterPlan {
  const char *refusal = nullptr;  // why the table has to be copied by the server
  const char *rebuild = nullptr;  // why all its trees are made anew; nullptr: they stay
  TableDef def;                   // of after
  // Indexes of the altered table that have to be built. With a rebuild the first is the primary key
  // (MAX_KEY: the hidden one).
  std::vector<unsigned> added;
  std::vector<uint32_t> dropped;  // ids of those that go
};

// `path`: of the table, or of the partition of it that has this definition.
AlterPlan plan_alter(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                     const std::string &path, const TableDef &was);

}  // namespace shale_sql
