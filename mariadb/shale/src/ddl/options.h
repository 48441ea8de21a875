// Options of CREATE TABLE.
#pragma once

#include <string>

struct ha_table_option_struct {
  char *compression;
  bool dictionary;
};
struct handlerton;
struct HA_CREATE_INFO;
class THD;
struct TABLE;

namespace shale_sql {

void fill_options(handlerton *hton);
// What the options of a table ask of its trees, or those of one of its partitions.
struct TreeOptions {
  std::string codec;  // empty: the default
  bool dictionary;    // whether compression dictionaries are allowed
};
TreeOptions tree_options(const ha_table_option_struct *options);
// `partition`: its name; empty, or of none: the table's own. `was`: what it has, where the server
// does not tell; no ALTER TABLE changes a partition's own options without making it anew.
TreeOptions tree_options(const TABLE *table, const std::string &partition, const TreeOptions &was);
// Whether DICTIONARY was given for either, and is not the default.
bool names_dictionary(const TABLE *table, const std::string &partition);
// What a strict statement asks for as ROW_FORMAT that no table of SHALE can be; nullptr: nothing.
const char *refused_row_format(THD *thd, const HA_CREATE_INFO *info);

}  // namespace shale_sql
