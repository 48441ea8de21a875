// SHOW GLOBAL STATUS LIKE 'shale%'.
#pragma once

struct st_mysql_show_var;

namespace shale_sql {

extern st_mysql_show_var status_variables[];

}  // namespace shale_sql
