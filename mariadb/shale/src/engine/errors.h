// From errors of the engine to those of the server's handler interface.
#pragma once

#include "engine/handles.h"

#include <string>

class THD;

namespace shale_sql {

// Errors that the handler interface has no number for; the text is kept (`last_text`).
constexpr int kErrEngine = 3000;       // see the text
constexpr int kErrTransactionFull = 3001;
constexpr int kErrDamagedRow = 3002;

// Takes the error, keeps its text for this thread, and answers with its number; 0 for none.
int number_of(shale_error *error);
// The same of a text of our own.
int failed(int number, std::string text);
// The text of this thread's last error.
const std::string &last_text();
// Its number. An error that the server met by itself has no text here.
int last_number();
// How texts of deadlocks are made fit for clients, who know tables and no trees. To be set before
// there are any.
void tell_deadlocks_by(std::string (*words)(const std::string &));
// Marks the transaction as lost if the engine has rolled it back, as the server wants to know.
int tell_server(THD *thd, int number);
// To the server's error log.
void log_error(const std::string &text);
void log_note(const std::string &text);

}  // namespace shale_sql
