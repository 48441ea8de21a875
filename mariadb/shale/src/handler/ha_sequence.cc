// The one row of a SEQUENCE, which the server's own handler of sequences keeps here. It is written
// outside of the transaction, since values that were given out do not come back with a rollback,
// and since nobody waits for others to commit.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// No row of another table has it: hidden keys begin with 1.
constexpr std::string_view kSequenceKey("\0\0\0\0\0\0\0\0", 8);

}  // namespace

bool ha_shale::is_sequence() const { return table_share->table_type == TABLE_TYPE_SEQUENCE; }

// The row as it is now, in no snapshot and without a lock.
int ha_shale::read_sequence(uchar *buf) {
  shale_bytes *found = nullptr;
  shale_error *error = shale_get(primary().tree, nullptr, kSequenceKey.data(), kSequenceKey.size(),
                                 &found);
  if (error != nullptr) return consume_error(error);
  if (found == nullptr) return HA_ERR_END_OF_FILE;
  BytesHandle row(found);
  last_.value.assign(view_of(row));
  last_.primary.assign(kSequenceKey);
  if (rows_->unpack(last_.primary, last_.value, nullptr, buf)) return 0;
  return failed(kErrDamagedRow, "the row of sequence " + shared_->path + " is damaged: restore it"
                                " from a backup");
}

// The log keeps the order: what is committed with a value comes after it. The first row is synced,
// as the definition is: without it the sequence could not be opened. Others are at the end of the
// transaction, but for two: a row that the binary log gets sooner, with the end of the statement;
// and one under LOCK TABLES, where the server does not tell the engine that a sequence is used.
int ha_shale::write_sequence(const uchar *buf, bool first) {
  value_.clear();
  rows_->pack(buf, &value_);
  THD *thd = ha_thd();
  bool lasts = !shared_->def->temporary;
  bool logged_early = in_transaction(thd) && mysql_bin_log.is_open() &&
                      thd_test_options(thd, OPTION_BIN_LOG);
  bool locked = thd->locked_tables_mode == LTM_LOCK_TABLES ||
                thd->locked_tables_mode == LTM_PRELOCKED_UNDER_LOCK_TABLES;
  bool sync = lasts && (first || logged_early || locked) && settings::sync_at_commit();
  int error = consume_error(shale_put(primary().tree, kSequenceKey.data(), kSequenceKey.size(),
                                      value_.data(), value_.size(), sync));
  if (lasts && !sync) engine().unsynced.note();
  return tell_server(thd, error);
}

// Only the server's handler of sequences asks for this.
int ha_shale::update_first_row(const uchar *new_row) { return write_sequence(new_row, false); }
