// What went wrong, as a value: a number of the server's handler interface, and a text.
#pragma once

#include "engine/handles.h"

#include <memory>
#include <string>

class THD;

namespace shale_sql {

// Errors that the handler interface has no number for; the text says what happened.
constexpr int kErrEngine = 3000;
constexpr int kErrTransactionFull = 3001;
constexpr int kErrDamagedRow = 3002;

// What a call has come to; as a condition it is true if something went wrong.
class [[nodiscard]] Error {
 public:
  Error() = default;  // nothing went wrong
  // Numbers that say all: 0, the end of a scan, a duplicate.
  Error(int number) : number_(number) {}
  Error(int number, std::string text)
      : number_(number), text_(std::make_unique<std::string>(std::move(text))) {}

  explicit operator bool() const { return number_ != 0; }
  int number() const { return number_; }
  bool has_text() const { return text_ != nullptr; }
  const std::string &text() const;

 private:
  int number_ = 0;
  std::unique_ptr<std::string> text_;  // most results have none, and cost no memory
};

inline bool operator==(const Error &error, int number) { return error.number() == number; }
inline bool operator!=(const Error &error, int number) { return error.number() != number; }

// That of an error of the engine, which is freed; one that tells of damage goes to the log too.
Error take_error(shale_error *error);
inline Error consume_error(shale_error *error) {
  return error == nullptr ? Error() : take_error(error);
}
// Marks the transaction as lost if the engine has rolled it back, as the server wants to know.
int tell_server(THD *thd, int number);
// To the server's error log.
void log_error(const std::string &text);
void log_note(const std::string &text);

}  // namespace shale_sql
