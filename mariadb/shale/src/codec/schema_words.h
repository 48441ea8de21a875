// What a table's rows and keys depend on of the server's definition, in words: one line for each
// column and each index. Tables with the same words have rows and keys of the same bytes.
#pragma once

#include <string>

struct TABLE;

namespace shale_sql {

std::string schema_words(TABLE *table);
// The first line that differs, as each has it; empty: they are the same.
std::string first_difference(const std::string &file, const std::string &table);

}  // namespace shale_sql
