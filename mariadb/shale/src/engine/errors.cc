// Which number of the server's an error has; its text is kept for the thread.

#include "engine/errors.h"

#include "server.h"


namespace shale_sql {

namespace {

thread_local std::string text_of_last;
thread_local int number_of_last = 0;

std::string (*deadlock_words)(const std::string &) = nullptr;

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

void tell_deadlocks_by(std::string (*words)(const std::string &)) { deadlock_words = words; }

int number_of(shale_error *error) {
  if (error == nullptr) return 0;
  ErrorHandle owned(error);
  text_of_last = shale_error_text(error);
  shale_error_kind kind = shale_error_kind_of(error);
  // The server tells clients of it.
  bool is_deadlock = kind == SHALE_DEADLOCK || kind == SHALE_ROLLED_BACK;
  if (is_deadlock && deadlock_words != nullptr) text_of_last = deadlock_words(text_of_last);
  if (kind == SHALE_CORRUPTION || kind == SHALE_PANIC || kind == SHALE_POISONED) {
    log_error(text_of_last);
  }
  number_of_last = number_of_kind(kind);
  return number_of_last;
}

int failed(int number, std::string text) {
  text_of_last = std::move(text);
  number_of_last = number;
  return number;
}

const std::string &last_text() { return text_of_last; }

int last_number() { return number_of_last; }

int tell_server(THD *thd, int number) {
  if (number == HA_ERR_LOCK_DEADLOCK) thd->mark_transaction_to_rollback(true);
  return number;
}

void log_error(const std::string &text) { sql_print_error("SHALE: %s", text.c_str()); }

void log_note(const std::string &text) { sql_print_information("SHALE: %s", text.c_str()); }

}  // namespace shale_sql
