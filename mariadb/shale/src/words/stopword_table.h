// Tables of SHALE whose first column has stop words, which a user names by a variable. A FULLTEXT
// index takes the words when it is made, and keeps them.
#pragma once

#include "codec/table_def.h"
#include "engine/errors.h"

class THD;
struct st_mysql_sys_var;

namespace shale_sql {

// The rules of FULLTEXT indexes that are made now, with the words of the table that the session
// names, or the server if it names none. Of one that is not there any more, or of another
// definition, the engine's own words.
Error rules_for_new_index(THD *thd, WordRules *rules);
// The same of those indexes of a definition whose ids are `first` or above.
Error set_new_rules(THD *thd, uint32_t first, TableDef *def);

// The variables. What they are set to is looked at: `database/table`.
st_mysql_sys_var *user_stopword_table_variable();
st_mysql_sys_var *server_stopword_table_variable();

}  // namespace shale_sql
