// Defaults, comments and CHECK constraints are left out: they say nothing of bytes.

#include "codec/schema_words.h"

#include "server.h"

#include <sstream>

namespace shale_sql {

namespace {

std::string text_of(const String &text) { return std::string(text.ptr(), text.length()); }

void add_column(const Field *field, std::string *out) {
  StringBuffer<MAX_FIELD_WIDTH> type(system_charset_info);
  field->sql_type(type);
  *out += "column `" + std::string(field->field_name.str) + "` " + text_of(type);
  if (field->has_charset()) *out += std::string(" collate ") + field->charset()->coll_name.str;
  if (!field->real_maybe_null()) *out += " not null";
  if ((field->flags & AUTO_INCREMENT_FLAG) != 0) *out += " auto_increment";
  if ((field->flags & VERS_ROW_START) != 0) *out += " as row start";
  if ((field->flags & VERS_ROW_END) != 0) *out += " as row end";
  if (field->compression_method() != nullptr) *out += " compressed";
  if (field->vcol_info != nullptr) {
    StringBuffer<MAX_FIELD_WIDTH> made(system_charset_info);
    field->vcol_info->print(&made);
    *out += " as (" + text_of(made) + (field->stored_in_db() ? ") stored" : ") virtual");
  }
  *out += '\n';
}

void add_index(const TABLE *table, const KEY &key, std::string *out) {
  *out += (key.flags & HA_NOSAME) != 0 ? "unique index `" : "index `";
  *out += std::string(key.name.str) + "` (";
  for (uint i = 0; i < key.user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = key.key_part[i];
    if (i != 0) *out += ", ";
    *out += "`" + std::string(table->field[part.fieldnr - 1]->field_name.str) + "`";
    if ((part.key_part_flag & HA_PART_KEY_SEG) != 0) {
      *out += "(" + std::to_string(part.length) + " bytes)";
    }
    if ((part.key_part_flag & HA_REVERSE_SORT) != 0) *out += " desc";
  }
  *out += ")";
  if (key.algorithm == HA_KEY_ALG_LONG_HASH) *out += " using hash";
  if (key.without_overlaps) *out += " without overlaps";
  // Other words have other entries.
  if ((key.flags & HA_USES_PARSER) != 0) {
    *out += " with parser " + std::string(plugin_name(key.parser)->str);
  }
  *out += '\n';
}

}  // namespace

std::string schema_words(TABLE *table) {
  std::string out;
  for (Field **field = table->field; *field != nullptr; field++) add_column(*field, &out);
  if (table->versioned()) out += "system versioning\n";
  for (uint number = 0; number < table->s->keys; number++) {
    if (number == table->s->primary_key) out += "primary ";
    add_index(table, table->key_info[number], &out);
  }
  return out;
}

std::string first_difference(const std::string &file, const std::string &table) {
  std::istringstream of_file(file), of_table(table);
  for (;;) {
    std::string there, here;
    const bool more = bool(std::getline(of_file, there)), own = bool(std::getline(of_table, here));
    if (!more && !own) return "";
    if (more && own && there == here) continue;
    return "the file has " + (more ? there : "nothing") + ", the table has " +
           (own ? here : "nothing");
  }
}

}  // namespace shale_sql
