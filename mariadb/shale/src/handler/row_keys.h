// The keys of a row, and the values of its entries.
#pragma once

#include "codec/many_codec.h"

#include <string>
#include <vector>

namespace shale_sql {

struct RowKeys {
  std::string primary;
  std::vector<std::string> keys;    // of the other indexes
  std::vector<std::string> values;
  std::vector<bool> has_null;
  std::vector<ManyEntries> many;  // by place, of indexes with many; or none at all
  bool same(const RowKeys &other) const {
    return primary == other.primary && keys == other.keys && values == other.values &&
           many == other.many;
  }
};

// What versions by ids of transactions make of a row.
struct RowVersions {
  std::vector<unsigned char> row, past;  // with its id; what it was
  RowKeys keys;                          // of what it was
  std::string value;
};

}  // namespace shale_sql
