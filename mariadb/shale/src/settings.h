// The system variables.
#pragma once

#include <string>

struct st_mysql_sys_var;
class THD;

namespace shale_sql {
namespace settings {

enum Durability : unsigned long { kNone = 0, kFull = 1, kPeriodic = 2 };

extern unsigned long long memory;
extern unsigned long durability;
std::string codec();
// Bytes that one statement may take to sort what it puts into new trees.
size_t sort_memory(THD *thd);
extern st_mysql_sys_var *variables[];

}  // namespace settings
}  // namespace shale_sql
