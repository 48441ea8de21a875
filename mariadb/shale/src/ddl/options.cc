// The table options that the server is told of, and what they ask for.

#include "ddl/options.h"

#include "server.h"

#include "create_options.h"

namespace shale_sql {

namespace {

constexpr const char kCompression[] = "COMPRESSION", kDictionary[] = "DICTIONARY";

ha_create_table_option table_options[] = {HA_TOPTION_STRING(kCompression, compression),
                                          HA_TOPTION_BOOL(kDictionary, dictionary, true),
                                          HA_TOPTION_END};

bool is_named(const engine_option_value *options, const char *name) {
  for (const engine_option_value *one = options; one != nullptr; one = one->next) {
    if (one->value.str == nullptr) continue;
    if (my_strcasecmp(system_charset_info, one->name.str, name) == 0) return true;
  }
  return false;
}

// A partition by its name; nullptr: there is none.
const partition_element *partition_of(const TABLE *table, const std::string &name) {
  if (table->part_info == nullptr) return nullptr;
  List_iterator<partition_element> all(table->part_info->partitions);
  while (const partition_element *one = all++) {
    if (my_strcasecmp(system_charset_info, one->partition_name, name.c_str()) == 0) return one;
  }
  return nullptr;
}

}  // namespace

void fill_options(handlerton *hton) { hton->table_options = table_options; }

TreeOptions tree_options(const ha_table_option_struct *options) {
  if (options == nullptr) return {"", false};
  std::string codec = options->compression == nullptr ? "" : options->compression;
  for (char &letter : codec) letter = static_cast<char>(my_tolower(&my_charset_latin1, letter));
  if (codec == "auto" || codec == "default") codec.clear();
  return {codec, options->dictionary};
}

TreeOptions tree_options(const TABLE *table, const std::string &partition,
                         const TreeOptions &was) {
  const partition_element *own = partition_of(table, partition);
  // The server has put the table's options beside the partition's.
  if (own != nullptr && own->option_struct != nullptr) return tree_options(own->option_struct);
  // Of subpartitions that are not named it does that only when it makes them.
  TreeOptions asked = tree_options(table->s->option_struct);
  if (own != nullptr && is_named(own->option_list, kCompression)) asked.codec = was.codec;
  if (own != nullptr && is_named(own->option_list, kDictionary)) asked.dictionary = was.dictionary;
  return asked;
}

bool names_dictionary(const TABLE *table, const std::string &partition) {
  const partition_element *own = partition_of(table, partition);
  return is_named(table->s->option_list, kDictionary) ||
         (own != nullptr && is_named(own->option_list, kDictionary));
}

const char *refused_row_format(THD *thd, const HA_CREATE_INFO *info) {
  if ((info->used_fields & HA_CREATE_USED_ROW_FORMAT) == 0) return nullptr;
  if (thd == nullptr || !thd->is_strict_mode()) return nullptr;
  if (info->row_type == ROW_TYPE_FIXED) return "ROW_FORMAT=FIXED";
  return info->row_type == ROW_TYPE_PAGE ? "ROW_FORMAT=PAGE" : nullptr;
}

}  // namespace shale_sql
