// The parts of an index, out of the server's definition of its table.

#include "codec/index_defs.h"

#include "server.h"

#include "codec/bytes.h"
#include "codec/geometry.h"
#include "codec/key_part.h"

namespace shale_sql {

namespace {

// InnoDB's main type of a column, and of some the rest that it compares: of whole numbers sign and
// bytes, of texts the collation. To it many types are bytes of one kind.
std::string kind_of(const Field *field) {
  const auto number = [&](bool is_unsigned) {
    return std::string(1, is_unsigned ? 'u' : 'i') + static_cast<char>(field->pack_length());
  };
  const auto text = [&] {
    if (field->binary() || field->key_type() == HA_KEYTYPE_BINARY) return std::string("b");
    std::string kind = "t";
    append_varint(&kind, field->charset()->number);
    return kind;
  };
  const enum_field_types real_type = field->real_type();
  if (real_type == MYSQL_TYPE_ENUM || real_type == MYSQL_TYPE_SET) return number(true);
  switch (field->type()) {
    case MYSQL_TYPE_GEOMETRY: return "g";
    case MYSQL_TYPE_FLOAT: return "f";
    case MYSQL_TYPE_DOUBLE: return "d";
    case MYSQL_TYPE_DECIMAL: return "o";
    case MYSQL_TYPE_NEWDECIMAL:
    case MYSQL_TYPE_BIT: return "b";
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_VAR_STRING:
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_BLOB: return text();
    case MYSQL_TYPE_TIME:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
      // Numbers in the format of before MySQL 5.6 only.
      if (field->key_type() == HA_KEYTYPE_BINARY) return "b";
      break;
    default: break;
  }
  return number((field->flags & UNSIGNED_FLAG) != 0);
}

RowEnd row_end_of(const TABLE *table, const TableDef &def) {
  RowEnd end;
  if (!table->versioned() || def.forms.empty()) return end;
  const Field *wanted = table->vers_end_field();
  size_t place = 0;
  for (Field **field = table->field; *field != wanted; field++) {
    if ((*field)->stored_in_db()) place++;
  }
  if (place >= def.forms.back().size()) return end;
  end.column = wanted->field_name.str;
  end.column_id = def.forms.back()[place].id;
  return end;
}

}  // namespace

bool has_many_entries(const KEY &key) { return (key.flags & HA_FULLTEXT) != 0; }

bool has_many_entries(const TABLE *table, unsigned number) {
  return number < table->s->keys && has_many_entries(table->key_info[number]);
}

PartDef part_of(TABLE *table, const KEY_PART_INFO &info) {
  PartDef part = KeyPart(table, info).describe();
  part.kind = kind_of(table->field[info.fieldnr - 1]);
  return part;
}

std::vector<PartDef> parts_of(TABLE *table, unsigned index) {
  std::vector<PartDef> parts;
  if (index >= MAX_KEY) return parts;
  const KEY &info = table->key_info[index];
  if ((info.flags & HA_SPATIAL) != 0) return {part_of_cells(table, info.key_part[0])};
  for (unsigned i = 0; i < info.user_defined_key_parts; i++) {
    parts.push_back(part_of(table, info.key_part[i]));
  }
  return parts;
}

const IndexDef *index_of(const TableDef &def, const TABLE *table, unsigned number) {
  if (number == table->s->primary_key) return &def.indexes[0];
  const char *name = table->key_info[number].name.str;
  for (size_t place = 1; place < def.indexes.size(); place++) {
    if (my_strcasecmp(system_charset_info, def.indexes[place].name.c_str(), name) == 0) {
      return &def.indexes[place];
    }
  }
  return nullptr;
}

bool has_indexes_of(const TableDef &def, const TABLE *table) {
  const bool hidden = table->s->primary_key == MAX_KEY;
  return hidden == def.hidden_key && table->s->keys + (hidden ? 1 : 0) == def.indexes.size();
}

void describe_indexes(TABLE *table, TableDef *def) {
  if (def->hidden_key) def->indexes[0].unique = true;
  def->row_end = row_end_of(table, *def);
  for (unsigned number = 0; number < table->s->keys; number++) {
    auto *index = const_cast<IndexDef *>(index_of(*def, table, number));
    if (index == nullptr) continue;
    index->unique = (table->key_info[number].flags & HA_NOSAME) != 0;
    index->parts = parts_of(table, number);
    if (!has_many_entries(table, number)) continue;
    index->has_words = (table->key_info[number].flags & HA_FULLTEXT) != 0;
    // Its entries are not the columns' values: nothing can be looked up in it by those.
    for (PartDef &part : index->parts) part.whole = false;
  }
}

}  // namespace shale_sql
