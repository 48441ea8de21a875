// The system variables; settings.h has what they are set to.
#pragma once

struct st_mysql_sys_var;

namespace shale_sql {

extern st_mysql_sys_var *system_variables[];

}  // namespace shale_sql
