// Writers go on with the table's old definition. They make the entries of a new index only if these
// have the same bytes by both definitions.

#include "ddl/online.h"

#include "server.h"

#include "codec/index_defs.h"

namespace shale_sql {

namespace {

// The column of the table that this one of the altered table is; nullptr: it is a new one.
Field *old_column(Alter_inplace_info *info, uint number) {
  List_iterator_fast<Create_field> columns(info->alter_info->create_list);
  Create_field *column = columns++;
  for (uint i = 0; i < number && column != nullptr; i++) column = columns++;
  return column == nullptr ? nullptr : column->field;
}

KEY_PART_INFO part_over(const KEY_PART_INFO &part, const Field *column) {
  KEY_PART_INFO over = part;
  over.field = nullptr;
  over.fieldnr = static_cast<field_index_t>(column->field_index + 1);
  over.null_bit = column->real_maybe_null() ? column->null_bit : 0;
  over.null_offset = column->real_maybe_null() ? column->null_offset() : 0;
  return over;
}

bool has_same_bytes(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                    const KEY_PART_INFO &part) {
  const Field *is = altered->field[part.fieldnr - 1];
  const Field *was = old_column(info, part.fieldnr - 1);
  // Who writes has virtual columns computed only if its own indexes need them.
  if (was == nullptr || !is->stored_in_db() || !was->stored_in_db() ||
      was->real_type() != is->real_type() || was->pack_length() != is->pack_length() ||
      was->charset() != is->charset()) {
    return false;
  }
  PartDef before = part_of(table, part_over(part, was));
  const PartDef after = part_of(altered, part);
  before.column = after.column;
  return before == after;
}

bool has_same_bytes(TABLE *table, TABLE *altered, Alter_inplace_info *info, const KEY &key) {
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    if (!has_same_bytes(table, altered, info, key.key_part[part])) return false;
  }
  return true;
}

}  // namespace

const char *why_alone(Alter_inplace_info *info, const AlterPlan &plan) {
  if (plan.added.empty()) return nullptr;
  // A write moves a row to another key, where nobody would look for it.
  if ((info->handler_flags & ALTER_DROP_SYSTEM_VERSIONING) != 0) return "rows of the past go";
  if ((info->create_info->used_fields & HA_CREATE_USED_AUTO) != 0) {
    return "AUTO_INCREMENT= is set above all that is in the table";
  }
  return nullptr;
}

bool writers_make_entries(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                          const AlterPlan &plan) {
  if (plan.rebuild != nullptr) return false;
  // Entries have the primary key too.
  const uint primary = altered->s->primary_key;
  if (primary != MAX_KEY && !has_same_bytes(table, altered, info, altered->key_info[primary])) {
    return false;
  }
  for (unsigned number : plan.added) {
    const KEY &key = altered->key_info[number];
    if (has_many_entries(key)) return false;
    if ((key.flags & HA_NOSAME) != 0 || !has_same_bytes(table, altered, info, key)) return false;
  }
  return true;
}

std::vector<KEY_PART_INFO> parts_over(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                                      unsigned number) {
  const KEY &key = altered->key_info[number];
  std::vector<KEY_PART_INFO> parts;
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    const Field *column = old_column(info, key.key_part[part].fieldnr - 1);
    parts.push_back(part_over(key.key_part[part], column));
  }
  return parts;
}

}  // namespace shale_sql
