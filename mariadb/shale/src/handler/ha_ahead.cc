// Rows of a range of a secondary index, read ahead: entries are taken in the order of the index,
// and their rows are read together, which costs less than one by one. More and more at a time, so
// that a statement that wants only the first rows reads few in vain. Only of plain reads: what
// locks must not lock rows that are never looked at, and who writes might change a row that was
// read ahead.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "txn/trx.h"

#include <algorithm>

using namespace shale_sql;

// Whether functions that the statement calls may write, and by an action of a foreign key to a
// table that is read here.
static bool writes_meanwhile(const THD *thd) {
  if (thd->locked_tables_mode <= LTM_LOCK_TABLES) return false;
  // The outermost statement has the list of all that is written.
  if (thd->in_sub_stmt != 0) return true;
  for (const TABLE_LIST *one = thd->lex->query_tables; one != nullptr; one = one->next_global) {
    if (one->lock_type >= TL_FIRST_WRITE) return true;
  }
  return false;
}

// Whether rows may be read before they are asked for. Who bounds what is examined (LIMIT ROWS
// EXAMINED) wants no more of it than is shown.
bool ha_shale::reads_plainly() {
  return lock_mode() == SHALE_LOCK_NONE && !asked_.whole_rows && !asked_.keys_only &&
         thd_sql_command(ha_thd()) == SQLCOM_SELECT &&
         ha_thd()->lex->limit_rows_examined == nullptr && !writes_meanwhile(ha_thd());
}

// The scan that has begun may read ahead.
void ha_shale::read_ahead() {
  if (scan_.index == nullptr || is_primary(*scan_.index) || !reads_plainly()) return;
  ahead_.most = first_ahead();
}

// How many rows are read first, of the only table of a statement: as many as it wants, if it says
// so. It may want more, as a condition leaves some out, or fewer. Who does not say it wants all
// that are in the range, which the scan does not pass.
size_t ha_shale::first_ahead() const {
  const TABLE_LIST *place = table->pos_in_table_list;
  const size_t bytes = std::max<size_t>(stats.mean_rec_length, shown_.row_bytes_guess);
  if (place == nullptr || place->select_lex == nullptr || bytes == 0) return 1;
  if (place->embedding != nullptr || place->select_lex->leaf_tables.elements != 1) return 1;
  const ha_rows limit = place->select_lex->master_unit()->lim.get_select_limit();
  // Long columns may be far longer than in the mean.
  const size_t without = table->s->blob_fields == 0 ? kWithoutLimit : 1;
  const size_t most = limit > kMostAhead ? without : std::max<size_t>(limit, 1);
  return std::clamp<size_t>(kMostBytesAhead / bytes, 1, most);
}

// Takes entries from the cursor until there are enough; HA_ERR_END_OF_FILE: it has no more.
int ha_shale::add_entries(uchar *buf, shale_txn *txn, range_id_t range) {
  while (ahead_.rows.size() < ahead_.most) {
    bool found = false, skip = false;
    std::string_view primary_key;
    const int error = scan_.cells != nullptr ? next_in_cells(txn, &found)
                                             : note(scan_.cursor.step(txn, false, &found));
    if (error != 0) return error;
    if (!found) return HA_ERR_END_OF_FILE;
    const std::string_view key = scan_.cursor.key(), value = scan_.cursor.value();
    if (int error = decode_entry(*scan_.index, buf, key, value, &primary_key, &skip)) return error;
    if (skip || is_skipped(range)) {
      if (thd_kill_level(ha_thd()) != THD_IS_NOT_KILLED) return HA_ERR_ABORTED_BY_USER;
      continue;
    }
    ahead_.rows.push_back({range, std::string(key), std::string(primary_key), nullptr, {}, false});
  }
  return 0;
}

// Reads the rows whose primary keys are known, all at once.
int ha_shale::fetch_rows(shale_txn *txn) {
  std::vector<std::string_view> keys;
  for (const RowAhead &row : ahead_.rows) keys.push_back(row.primary);
  std::vector<BytesHandle> values;
  int error = note(read_together(txn, primary().tree, keys, &values));
  for (size_t i = 0; i < values.size(); i++) {
    RowAhead &row = ahead_.rows[i];
    row.value = std::move(values[i]);
    if (row.value) row.bytes = view_of(row.value);
  }
  return error;
}

int ha_shale::fill_ahead(uchar *buf, shale_txn *txn) {
  ahead_.next = 0;
  ahead_.rows.clear();
  // What was found before the end, or before an error, comes first.
  ahead_.ended = add_entries(buf, txn, nullptr);
  if (int error = fetch_rows(txn)) return error;
  ahead_.grow();
  return 0;
}

int ha_shale::step_ahead(uchar *buf) {
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  for (;;) {
    if (ahead_.next == ahead_.rows.size()) {
      if (ahead_.ended != 0) return ahead_.ended;
      if (int error = fill_ahead(buf, txn)) return error;
      continue;
    }
    RowAhead &row = ahead_.rows[ahead_.next++];
    ahead_.key = std::move(row.key);
    if (!row.value) {
      bool skip = false;
      if (int error = row_is_missing(*scan_.index, &skip)) return error;
      continue;
    }
    last_.primary = std::move(row.primary);
    asked_.base_columns = computes(*scan_.index, buf);
    int error = fill_from_primary(buf, last_.primary, row.bytes);
    asked_.base_columns = false;
    return error != 0 ? error : compute(*scan_.index, buf);
  }
}
