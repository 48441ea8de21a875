// What the engine says of locks and deadlocks, in the words of SQL.
#pragma once

#include "engine/errors.h"

#include <string>

namespace shale_sql {

// Of a text of the engine: tables, indexes and values in place of the names of trees and of keys. A
// table that is not open is named only; keys of it are left out.
std::string in_words(const std::string &text);
// The text of an error, for clients: they know tables and no trees.
std::string text_for_clients(const Error &error);

}  // namespace shale_sql
