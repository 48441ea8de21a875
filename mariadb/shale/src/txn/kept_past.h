// Rows of which an action of a foreign key has kept what they were, in this transaction.
//
// InnoDB numbers the documents of a table with a FULLTEXT index. The row of the past that an action
// leaves has its row's number, and no two rows of one time have the same. So a row that ends at the
// time of the action leaves nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace shale_sql {

class KeptPast {
 public:
  void note(uint64_t table_id, const std::string &primary) {
    if (rows_.size() < kMost) rows_.emplace(table_id, primary);
  }
  bool has(uint64_t table_id, const std::string &primary) const {
    return !rows_.empty() && rows_.count({table_id, primary}) != 0;
  }
  void forget(uint64_t table_id, const std::string &primary) { rows_.erase({table_id, primary}); }
  void forget_all() {
    if (!rows_.empty()) rows_.clear();
  }

 private:
  // It bounds the memory of a connection. Of further rows a version of no time is left.
  static constexpr size_t kMost = 100000;

  std::set<std::pair<uint64_t, std::string>> rows_;
};

}  // namespace shale_sql
