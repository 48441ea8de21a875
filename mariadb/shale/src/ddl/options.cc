// The table options that the server is told of, and what they ask for.

#include "ddl/options.h"

#include "server.h"

#include "create_options.h"

namespace shale_sql {

namespace {

ha_create_table_option table_options[] = {
    HA_TOPTION_STRING("COMPRESSION", compression), HA_TOPTION_BOOL("DICTIONARY", dictionary, true),
    HA_TOPTION_END};

}  // namespace

void fill_options(handlerton *hton) { hton->table_options = table_options; }

std::string codec_of(const ha_table_option_struct *options) {
  if (options == nullptr || options->compression == nullptr) return "";
  std::string codec = options->compression;
  for (char &letter : codec) letter = static_cast<char>(my_tolower(&my_charset_latin1, letter));
  return codec == "auto" || codec == "default" ? "" : codec;
}

bool has_dictionary(const ha_table_option_struct *options) {
  return options != nullptr && options->dictionary;
}

bool names_dictionary(const TABLE_SHARE *share) {
  for (const engine_option_value *option = share->option_list; option != nullptr;
       option = option->next) {
    if (option->value.str != nullptr && my_strcasecmp(system_charset_info, option->name.str,
                                                      "DICTIONARY") == 0) {
      return true;
    }
  }
  return false;
}

const char *refused_row_format(THD *thd, const HA_CREATE_INFO *info) {
  if ((info->used_fields & HA_CREATE_USED_ROW_FORMAT) == 0) return nullptr;
  if (thd == nullptr || !thd->is_strict_mode()) return nullptr;
  if (info->row_type == ROW_TYPE_FIXED) return "ROW_FORMAT=FIXED";
  return info->row_type == ROW_TYPE_PAGE ? "ROW_FORMAT=PAGE" : nullptr;
}

}  // namespace shale_sql
