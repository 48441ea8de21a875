// What was found, by rank and by primary key.

#include "words/found_words.h"

#include <algorithm>
#include <numeric>

namespace shale_sql {

void FoundWords::sort() {
  by_rank.resize(matches.size());
  std::iota(by_rank.begin(), by_rank.end(), 0);
  std::stable_sort(by_rank.begin(), by_rank.end(), [this](uint32_t a, uint32_t b) {
    return matches[a].rank > matches[b].rank;
  });
}

float FoundWords::rank_of(std::string_view primary) const {
  const auto place = std::lower_bound(
      matches.begin(), matches.end(), primary,
      [](const WordMatch &match, std::string_view wanted) { return match.primary < wanted; });
  return place != matches.end() && place->primary == primary ? place->rank : 0;
}

}  // namespace shale_sql
