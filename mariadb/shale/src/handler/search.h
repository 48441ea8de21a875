// What the server's search tuples ask for, as bounds of keys.
#pragma once

#include "server.h"

#include "codec/bytes.h"

#include <string>
#include <string_view>

namespace shale_sql {

// What a search tuple asks for, as bounds of keys and the end to begin at.
struct Search {
  std::string lower, upper;
  bool has_upper = false;
  bool backward = false;
  bool exact = false;
  bool possible = true;
};

// Into one of before, whose texts have room.
inline void search_of(std::string_view prefix, enum ha_rkey_function how, Search *search) {
  search->lower.clear();
  search->upper.clear();
  search->has_upper = search->backward = search->exact = false;
  search->possible = true;
  switch (how) {
    case HA_READ_KEY_EXACT:
    case HA_READ_PREFIX:
    case HA_READ_PREFIX_LAST:
      search->exact = true;
      search->backward = how == HA_READ_PREFIX_LAST;
      search->lower = prefix;
      search->upper = prefix;
      search->has_upper = next_after_prefix(&search->upper);
      break;
    case HA_READ_KEY_OR_NEXT:
      search->lower = prefix;
      break;
    case HA_READ_AFTER_KEY:
      search->lower = prefix;
      search->possible = next_after_prefix(&search->lower);
      break;
    case HA_READ_BEFORE_KEY:
      search->upper = prefix;
      search->has_upper = search->backward = true;
      break;
    case HA_READ_KEY_OR_PREV:
    case HA_READ_PREFIX_LAST_OR_PREV:
      search->upper = prefix;
      search->has_upper = next_after_prefix(&search->upper);
      search->backward = true;
      break;
    default:
      search->possible = false;
      break;
  }
}

inline bool has_null(const KEY &key, const uchar *tuple, key_part_map parts) {
  for (uint part = 0; part < key.user_defined_key_parts && (parts & 1) != 0; part++, parts >>= 1) {
    if (key.key_part[part].null_bit != 0 && *tuple != 0) return true;
    tuple += key.key_part[part].store_length;
  }
  return false;
}

}  // namespace shale_sql
