// Compares what rows and entries depend on.

#include "codec/same_definition.h"

#include "server.h"

#include "codec/index_defs.h"
#include "codec/key_codec.h"
#include "codec/row_codec.h"

namespace shale_sql {

namespace {

// Letter case of names aside: EXCHANGE PARTITION takes tables for the same that differ in it. Nor
// do entries depend on the kind.
bool is_same(const PartDef &there, const PartDef &part) {
  PartDef renamed = there;
  renamed.column = part.column;
  renamed.kind = part.kind;
  return renamed == part && my_strcasecmp(system_charset_info, there.column.c_str(),
                                          part.column.c_str()) == 0;
}

bool is_same(const IndexDef &there, const IndexDef &index) {
  const auto same = [](const PartDef &a, const PartDef &b) { return is_same(a, b); };
  return there.parts.empty() ||
         (there.unique == index.unique && there.has_words == index.has_words &&
          std::equal(there.parts.begin(), there.parts.end(), index.parts.begin(),
                     index.parts.end(), same));
}

}  // namespace

std::string difference(TABLE *table, const TableDef &def) {
  if (!has_indexes_of(def, table)) return "other indexes";
  for (uint number = 0; number < table->s->keys; number++) {
    if (index_of(def, table, number) == nullptr) {
      return "other indexes (no " + std::string(table->key_info[number].name.str) + ")";
    }
  }
  const KeyCodec primary(table, table->s->primary_key, nullptr);
  if (!RowCodec::fits(table, &primary, def)) return "other columns";
  TableDef described = def;
  describe_indexes(table, &described);
  for (size_t place = 0; place < def.indexes.size(); place++) {
    if (!is_same(def.indexes[place], described.indexes[place])) {
      return "another index " + def.indexes[place].name;
    }
  }
  return "";
}

}  // namespace shale_sql
