// Foreign keys as bytes, and back.

#include "engine/foreign_key.h"

#include "codec/bytes.h"

namespace shale_sql {

namespace {

constexpr char kFormat = 1;
constexpr size_t kLast = static_cast<size_t>(ForeignAction::kSetDefault);

void put_text(std::string *out, std::string_view text) {
  append_varint(out, text.size());
  out->append(text);
}

bool read_text(Reader *in, std::string *text) {
  std::string_view found;
  if (!in->with_length(&found)) return false;
  *text = found;
  return true;
}

bool read_action(Reader *in, ForeignAction *action) {
  uint64_t number = 0;
  if (!in->varint(&number) || number > kLast) return false;
  *action = static_cast<ForeignAction>(number);
  return true;
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
  Reader in(bytes.substr(1));
  uint64_t columns = 0;
  if (!read_text(&in, &key->parent) || !read_action(&in, &key->on_delete) ||
      !read_action(&in, &key->on_update) || !in.varint(&columns)) {
    return false;
  }
  // Each takes a byte at least.
  if (columns == 0 || columns > in.left()) return false;
  key->columns.resize(columns);
  key->parent_columns.resize(columns);
  for (auto *list : {&key->columns, &key->parent_columns}) {
    for (std::string &column : *list) {
      if (!read_text(&in, &column)) return false;
    }
  }
  return in.left() == 0;
}

}  // namespace shale_sql
