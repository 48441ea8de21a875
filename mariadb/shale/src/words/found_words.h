// What one MATCH of a statement has found: the server holds it, and asks it for ranks.
#pragma once

#include "server.h"

#include "words/word_search.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

struct FoundWords : st_ft_info {
  std::vector<WordMatch> matches;  // in the order of their primary keys
  std::vector<uint32_t> by_rank;   // the highest first; of equal ranks by primary key
  size_t next = 0;                 // of by_rank, to be read
  float rank = 0;                  // of the row last read
  // What was searched for, of rows that are locked when they are read: they may have changed since.
  WordQuery query;
  unsigned index = 0;
  std::function<bool()> still_matches;  // the row last read; none: rows are as they were found
  const std::string *last = nullptr;  // primary key of the row that the handler has last read

  void sort();
  // 0: the row does not match.
  float rank_of(std::string_view primary) const;
};

}  // namespace shale_sql
