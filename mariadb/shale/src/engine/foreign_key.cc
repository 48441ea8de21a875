// Foreign keys as bytes, and back.

#include "engine/foreign_key.h"

#include "codec/fields.h"

namespace shale_sql {

namespace {

constexpr char kFormat = 1;
constexpr size_t kLast = static_cast<size_t>(ForeignAction::kSetDefault);

ForeignAction read_action(FieldReader *in, bool *known) {
  const uint64_t number = in->number();
  *known = *known && number <= kLast;
  return static_cast<ForeignAction>(number);
}

}  // namespace

std::string entry_name_of(const ForeignKey &key) { return key.child + '\0' + key.name; }

std::string bytes_of(const ForeignKey &key) {
  std::string out(1, kFormat);
  put_text(&out, key.parent);
  append_varint(&out, static_cast<uint64_t>(key.on_delete));
  append_varint(&out, static_cast<uint64_t>(key.on_update));
  append_varint(&out, key.columns.size());
  for (const std::string &column : key.columns) put_text(&out, column);
  for (const std::string &column : key.parent_columns) put_text(&out, column);
  return out;
}

bool parse(std::string_view entry_name, std::string_view bytes, ForeignKey *key) {
  const size_t end = entry_name.find('\0');
  if (end == 0 || end == std::string_view::npos || end + 1 == entry_name.size()) return false;
  key->child = entry_name.substr(0, end);
  key->name = entry_name.substr(end + 1);
  if (bytes.empty() || bytes.front() != kFormat) return false;
  FieldReader in(bytes.substr(1));
  bool known = true;
  key->parent = in.text();
  key->on_delete = read_action(&in, &known);
  key->on_update = read_action(&in, &known);
  const uint64_t columns = in.count();
  key->columns.resize(columns);
  key->parent_columns.resize(columns);
  for (std::string &column : key->columns) column = in.text();
  for (std::string &column : key->parent_columns) column = in.text();
  return in.is_whole() && known && columns != 0;
}

}  // namespace shale_sql
