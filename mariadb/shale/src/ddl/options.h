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
struct TABLE_SHARE;

namespace shale_sql {

void fill_options(handlerton *hton);
// The codec that a table's options ask for; empty: the default.
std::string codec_of(const ha_table_option_struct *options);
// Whether they allow compression dictionaries.
bool has_dictionary(const ha_table_option_struct *options);
// Whether DICTIONARY was given for a table, and is not the default.
bool names_dictionary(const TABLE_SHARE *share);
// What a strict statement asks for as ROW_FORMAT that no table of SHALE can be; nullptr: nothing.
const char *refused_row_format(THD *thd, const HA_CREATE_INFO *info);

}  // namespace shale_sql
