// What the engine says of itself, with the names of tables and indexes in place of those of trees.
#pragma once

#include "json.h"

#include <map>
#include <string>

struct st_mysql_show_var;
struct handlerton;

namespace shale_sql {

// Whose a tree is.
struct TreeOwner {
  std::string schema, table;
  std::string index;  // empty: the hidden primary key
};

// By tree; those of the engine itself are in none.
std::map<std::string, TreeOwner> tree_owners();
// `schema`.`table`.`index`, or the tree's own name.
std::string name_of(const std::map<std::string, TreeOwner> &owners, const std::string &tree);

// A report of a shale_report_kind; nothing (with a note in the log) if it cannot be had.
Json engine_report(int kind);
// The engine's statistics; nothing (with a note in the log) if they cannot be had.
Json engine_statistics();

// SHOW ENGINE SHALE STATUS.
void fill_status(handlerton *hton);
// SHOW GLOBAL STATUS LIKE 'shale%'.
extern st_mysql_show_var status_variables[];
// Rows that statements wrote and read, for the status variables.
void count_rows(unsigned long inserted, unsigned long updated, unsigned long deleted);

// What information_schema has of SHALE: see tables.cc and transactions_table.cc.
extern struct st_mysql_information_schema information_schema;
int start_levels(void *place);
int start_locks(void *place);
int start_transactions(void *place);
int start_trees(void *place);
int stop_table(void *place);

}  // namespace shale_sql
