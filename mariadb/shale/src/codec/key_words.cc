// A key in words: its parts, then those of the primary key, or the number of a hidden one.

#include "codec/key_words.h"

#include "server.h"

#include "codec/cells.h"
#include "codec/key_part.h"
#include "codec/value_words.h"

#include <algorithm>

namespace shale_sql {

namespace {

constexpr size_t kHiddenBytes = 8;

}  // namespace

KeyWords::KeyWords(TABLE *table, unsigned index) {
  if (index >= MAX_KEY) return;
  auto add = [&](unsigned number) {
    const KEY &key = table->key_info[number];
    if ((key.flags & HA_SPATIAL) != 0) {
      has_cell_ = true;
      return;
    }
    for (unsigned i = 0; i < key.user_defined_key_parts; i++) {
      parts_.emplace_back(table, key.key_part[i]);
    }
  };
  add(index);
  unsigned primary = table->s->primary_key;
  if (primary != index && primary < MAX_KEY) add(primary);
}

KeyWords::~KeyWords() = default;

std::string KeyWords::of(std::string_view key, bool cut, bool *after) const {
  std::string out;
  Reader reader(key);
  *after = false;
  if (has_cell_) {
    out = "cell";
    reader.pass(std::min(kCellBytes, reader.left()));
  }
  for (const KeyPart &part : parts_) {
    if (reader.left() == 0) break;
    std::string value;
    if (!part.words(&reader, &value)) {
      out += out.empty() ? "..." : ",...";
      reader.pass(reader.left());
      break;
    }
    out += (out.empty() ? "" : ",") + value;
  }
  if (reader.left() >= kHiddenBytes) {
    out += (out.empty() ? "row " : ",row ") + std::to_string(high_first(reader.at(), kHiddenBytes));
    reader.pass(kHiddenBytes);
  }
  *after = !cut && reader.left() == 1 && *reader.at() == 0;
  return "(" + out + ")";
}

}  // namespace shale_sql
