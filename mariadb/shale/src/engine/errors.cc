// Which number of the server's an error of the engine has.

#include "engine/errors.h"

#include "server.h"

namespace shale_sql {

namespace {

int number_of_kind(shale_error_kind kind) {
  switch (kind) {
    case SHALE_OK:
      return 0;
    case SHALE_LOCK_TIMEOUT:
      return HA_ERR_LOCK_WAIT_TIMEOUT;
    case SHALE_INTERRUPTED:
      return HA_ERR_ABORTED_BY_USER;
    case SHALE_DEADLOCK:
    case SHALE_ROLLED_BACK:
      return HA_ERR_LOCK_DEADLOCK;
    case SHALE_LOCKS_FULL:
      return HA_ERR_LOCK_TABLE_FULL;
    case SHALE_DISK_FULL:
    case SHALE_SPACE_LIMIT:
      return HA_ERR_RECORD_FILE_FULL;
    case SHALE_CORRUPTION:
      return HA_ERR_CRASHED_ON_USAGE;
    case SHALE_READ_ONLY:
      return HA_ERR_TABLE_READONLY;
    case SHALE_NO_SUCH_TREE:
      return HA_ERR_TABLE_DEF_CHANGED;
    case SHALE_CONFLICT:
      return HA_ERR_RECORD_CHANGED;
    case SHALE_TRANSACTION_FULL:
      return kErrTransactionFull;
    default:
      return kErrEngine;
  }
}

}  // namespace

const std::string &Error::text() const {
  static const std::string none;
  return text_ == nullptr ? none : *text_;
}

Error take_error(shale_error *error) {
  ErrorHandle owned(error);
  std::string text = shale_error_text(error);
  shale_error_kind kind = shale_error_kind_of(error);
  if (kind == SHALE_CORRUPTION || kind == SHALE_PANIC || kind == SHALE_POISONED) log_error(text);
  return Error(number_of_kind(kind), std::move(text));
}

// As InnoDB: of all these no handler of a function or trigger keeps the statement from failing,
// which would leave half of what it did.
int tell_server(THD *thd, int number) {
  const bool ends = number == HA_ERR_LOCK_DEADLOCK || number == HA_ERR_LOCK_TABLE_FULL;
  if (ends || number == HA_ERR_LOCK_WAIT_TIMEOUT) thd->mark_transaction_to_rollback(ends);
  return number;
}

void log_error(const std::string &text) { sql_print_error("SHALE: %s", text.c_str()); }

void log_note(const std::string &text) { sql_print_information("SHALE: %s", text.c_str()); }

}  // namespace shale_sql
