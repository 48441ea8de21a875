// What the server is told of an error: its number at once, its words when it asks for them.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "tables/in_words.h"
#include "txn/trx.h"

using namespace shale_sql;

// In the connection: the server may ask the handler of another partition than the one that failed.
int ha_shale::note_failure(Error error) {
  const int number = error.number();
  THD *thd = ha_thd();
  if (error.has_text() && thd != nullptr) Trx::of(thd)->note_error(std::move(error));
  return number;
}

// The server's words for a full disk and for damage do not say which file, nor what to do.
void ha_shale::print_error(int error, myf flags) {
  const char *name = table_share->table_name.str;
  const Error &last = trx()->last_error();
  if (error == HA_ERR_GENERIC && ha_thd()->is_error()) return;  // told already
  if (last != error) {
    handler::print_error(error, flags);
  } else if (error == HA_ERR_RECORD_FILE_FULL) {
    my_printf_error(ER_RECORD_FILE_FULL, "The table '%s' is full: %s", flags, name,
                    last.text().c_str());
  } else if (error == HA_ERR_CRASHED_ON_USAGE) {
    my_printf_error(ER_CRASHED_ON_USAGE, "Table '%s' is damaged: %s; CHECK TABLE tells all that is",
                    flags, name, last.text().c_str());
  } else {
    handler::print_error(error, flags);
  }
}

bool ha_shale::get_error_message(int error, String *text) {
  const Error &last = trx()->last_error();
  if (last != error) return false;
  std::string words = text_for_clients(last);
  // The server appends this one to words of its own.
  if (error == HA_ERR_LOCK_DEADLOCK && !words.empty()) text->append(STRING_WITH_LEN("; "));
  text->append(words.data(), words.size());
  return false;
}
