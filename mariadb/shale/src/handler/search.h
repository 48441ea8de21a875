// What the server's search tuples ask for, as bounds of keys.
#pragma once

#include "server.h"

#include "codec/bytes.h"

#include <string>

namespace shale_sql {

// What a search tuple asks for, as bounds of keys and the end to begin at.
struct Search {
  std::string lower, upper;
  bool has_upper = false;
  bool backward = false;
  bool exact = false;
  bool possible = true;
};

inline Search search_of(std::string prefix, enum ha_rkey_function how) {
  Search search;
  std::string after = prefix;
  bool has_after = next_after_prefix(&after);
  switch (how) {
    case HA_READ_KEY_EXACT:
    case HA_READ_PREFIX:
    case HA_READ_PREFIX_LAST:
      search.exact = true;
      search.backward = how == HA_READ_PREFIX_LAST;
      search.lower = std::move(prefix);
      search.upper = std::move(after);
      search.has_upper = has_after;
      break;
    case HA_READ_KEY_OR_NEXT:
      search.lower = std::move(prefix);
      break;
    case HA_READ_AFTER_KEY:
      search.lower = std::move(after);
      search.possible = has_after;
      break;
    case HA_READ_BEFORE_KEY:
      search.upper = std::move(prefix);
      search.has_upper = search.backward = true;
      break;
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV:
      search.upper = std::move(after);
      search.has_upper = has_after;
      search.backward = true;
      break;
    default:
      search.possible = false;
      break;
  }
  return search;
}

inline bool has_null(const KEY &key, const uchar *tuple, key_part_map parts) {
  for (uint part = 0; part < key.user_defined_key_parts && (parts & 1) != 0; part++, parts >>= 1) {
    if (key.key_part[part].null_bit != 0 && *tuple != 0) return true;
    tuple += key.key_part[part].store_length;
  }
  return false;
}

}  // namespace shale_sql
