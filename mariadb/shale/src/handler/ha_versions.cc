// Tables whose rows say by ids of transactions from when to when they were current. Of those with
// times the server writes the rows of the past, of these the engine does, as InnoDB.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "txn/trx.h"

#include <cstring>

using namespace shale_sql;

namespace {

constexpr uint64_t kCurrent = UINT64_MAX;

// A copy of a row, with an id of its own in a column.
void copy_with(const uchar *row, const TABLE *table, const Field *field, uint64_t id,
               std::vector<uchar> *copy) {
  copy->assign(row, row + table->s->reclength);
  int8store(copy->data() + field->offset(table->record[0]), id);
}

// Whether an update changes a column that keeps versions.
bool changes_versioned(const TABLE *table, const uchar *was, const uchar *is) {
  for (Field **at = table->field; *at != nullptr; at++) {
    Field *field = *at;
    if (!field->stored_in_db() || field->vers_update_unversioned()) continue;
    const bool is_null = field->is_null_in_record(is);
    if (field->is_null_in_record(was) != is_null) return true;
    if (is_null) continue;
    if (field->cmp_binary(field->ptr_in_record(was), field->ptr_in_record(is)) != 0) return true;
  }
  return false;
}

}  // namespace

// Not where the server writes rows of the past itself, as of a copy.
bool ha_shale::writes_versions() const { return table->versioned_write(VERS_TRX_ID); }

int ha_shale::insert_version(const uchar *row) {
  uint64_t id = 0;
  if (int error = note(trx()->version_id(&id))) return error;
  copy_with(row, table, table->vers_start_field(), id, &version_.row);
  return store_row(version_.row.data());
}

// Of several changes by one transaction only the last has a version. An update that names a column
// with versions makes one whatever it changes; of others the server has asked for none. Only
// actions of foreign keys look at what they change. All of this as InnoDB.
int ha_shale::update_version(const uchar *old_row, const uchar *new_row) {
  const bool is_action = following_ != nullptr;
  if (is_past(old_row) || (is_action && !changes_versioned(table, old_row, new_row))) {
    return change_row(old_row, new_row, nullptr);
  }
  uint64_t id = 0;
  if (int error = note(trx()->version_id(&id))) return error;
  copy_with(new_row, table, table->vers_start_field(), id, &version_.row);
  const bool keeps = table->vers_start_id(old_row) != id;
  if (keeps) {
    copy_with(old_row, table, table->vers_end_field(), id, &version_.past);
    if (int error = pack_past(version_.past.data())) return error;
  }
  return change_row(old_row, version_.row.data(), keeps ? version_.past.data() : nullptr);
}

int ha_shale::end_version(const uchar *row, bool *ended) {
  *ended = false;
  if (is_past(row)) return 0;
  uint64_t id = 0;
  if (int error = note(trx()->version_id(&id))) return error;
  if (table->vers_start_id(row) == id) return 0;
  *ended = true;
  copy_with(row, table, table->vers_end_field(), id, &version_.row);
  return change_row(row, version_.row.data(), nullptr);
}

// Before the row's own keys: what is computed of a column is of one row at a time.
int ha_shale::pack_past(const uchar *row) {
  if (shared_->def->hidden_key) {
    if (int error = new_hidden_key(&version_.keys.primary)) return error;
  }
  if (int error = compute_for_keys(row)) return error;
  pack_keys(row, &version_.keys);
  return 0;
}

// Puts a row of the past beside the change of the row: both are written or none.
int ha_shale::add_past(const uchar *row) {
  const RowKeys &keys = version_.keys;
  version_.value.clear();
  rows_->pack(row, &version_.value);
  row_write_.add(0, primary().tree,
                 shared_->def->hidden_key ? SHALE_ACTION_PUT : insert_action(), keys.primary,
                 version_.value);
  for (size_t place = 1; place < indexes_.size(); place++) {
    if (int error = add_entry(row, place, keys)) return error;
  }
  if (is_building()) add_building(nullptr, {}, row, keys.primary, &online_.past);
  count_change(1);
  return 0;
}
