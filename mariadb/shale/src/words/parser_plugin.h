// Parser plugins of FULLTEXT indexes (`WITH PARSER`): what makes words of documents, and reads
// queries, in place of the engine's own rules.
//
// A word's place is its number in the row: a plugin may give words that are not in the text.
#pragma once

#include "words/query_tree.h"
#include "words/tokens.h"

#include <string>
#include <string_view>
#include <vector>

struct st_mysql_ftparser;
struct st_key;

namespace shale_sql {

struct ParsedWord {
  std::string text;  // as the plugin gave it
  size_t chars = 0;
};

// The plugin of an open table's key; none: nullptr.
st_mysql_ftparser *parser_of(const st_key &key);

// What the plugin makes of a document. `phrase`: all words, also those that go into no index.
std::vector<ParsedWord> parse_document(const WordForms &forms, std::string_view text, bool phrase);

// Reads a query, which is folded already. As of InnoDB, one that does not parse finds nothing: it
// has no root.
WordSyntax parse_query(const WordForms &forms, std::string_view text, bool boolean,
                       QueryNodePtr *root);

}  // namespace shale_sql
