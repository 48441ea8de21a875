// Generated columns that are in no row: computed where the server has not, for indexes over them.

#include "handler/ha_shale.h"

#include "engine/errors.h"

using namespace shale_sql;

// Columns that are in no row are computed by the server, but neither in a read of an index alone
// nor in a buffer of its own, where rows of partitions are compared by them.
bool ha_shale::computes(const Index &index, const uchar *buf) const {
  return index.computed && (asked_.keys_only || buf != table->record[0]);
}

// Computes generated columns of record[0] that are in the read set. A value that is cut was so when
// the row was written, which has had its warning and its count.
int ha_shale::compute_quietly(enum_vcol_update_mode mode) {
  THD *thd = ha_thd();
  const ha_rows cut = thd->cuted_fields;
  Dummy_error_handler quiet;
  thd->push_internal_handler(&quiet);
  const int error = table->update_virtual_fields(this, mode);
  thd->pop_internal_handler();
  thd->cuted_fields = cut;
  return error;
}

// The virtual columns, all of them.
int ha_shale::compute_quietly() {
  MY_BITMAP *wanted = tmp_use_all_columns(table, &table->read_set);
  const int error = compute_quietly(VCOL_UPDATE_FOR_READ);
  tmp_restore_column_map(&table->read_set, wanted);
  return error == 0 ? 0 : failed(kErrEngine, "a generated column could not be computed");
}

// Long values that were computed stay with the row last read: a column's own memory is of one row
// only. For a write those that it has asked for.
void ha_shale::keep_computed(bool for_write) {
  last_.computed.clear();
  last_.computed.reserve(table->s->blob_fields);
  for (Field **field = table->vfield; *field != nullptr; field++) {
    if (((*field)->flags & BLOB_FLAG) == 0) continue;
    const bool is_asked = bitmap_is_set(table->read_set, (*field)->field_index);
    if (for_write ? !is_asked || (*field)->is_null() : (*field)->stored_in_db()) continue;
    auto *blob = static_cast<Field_blob *>(*field);
    const char *bytes = reinterpret_cast<const char *>(blob->get_ptr());
    last_.computed.emplace_back(bytes, blob->get_length());
    blob->set_ptr(blob->get_length(), reinterpret_cast<uchar *>(&last_.computed.back()[0]));
  }
}

// The same in a row that may be anywhere. `keeps`: long ones as keep_computed does.
int ha_shale::compute_in(const uchar *row, bool keeps) {
  uchar *record = table->record[0];
  const bool aside = row != record;
  if (aside) table->move_fields(table->field, row, record);
  const int error = compute_quietly();
  if (keeps) keep_computed(false);
  if (aside) table->move_fields(table->field, record, row);
  return error;
}

int ha_shale::compute(const Index &index, uchar *buf) {
  if (!computes(index, buf)) return 0;
  const bool alone = asked_.keys_only;
  if (alone) ha_end_keyread();
  const int error = compute_in(buf, true);
  if (alone) ha_start_keyread(index.number);
  return error;
}

// Who applies an event of the binary log has virtual columns only as far as the event has them: of
// a row that goes the key alone, or none that the server of the event does not know. Indexes need
// all. Of long ones the server keeps two values, and computes the new row of a table with versions
// once too often: the old row's is gone then.
int ha_shale::compute_for_keys(const uchar *row) {
  if (!has_computed_) return 0;
  if (!has_long_computed_ && !ha_thd()->lex->is_stmt_row_injection()) return 0;
  return compute_in(row, false);
}
