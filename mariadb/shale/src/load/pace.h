// Leaves processors to those who write while an ALTER TABLE reads and sorts a whole table.
#pragma once

#include "tables/table_counts.h"

#include <cstdint>

class THD;

namespace shale_sql {

class Pace {
 public:
  // `counts`: of the table, whose writers are meant; they have to outlive this.
  Pace(THD *thd, const TableCounts &counts);

  // To be asked every some hundred rows: rests for a share of the time in which this thread has
  // worked (shale_alter_rest), if others have written since the last rest. True: the statement was
  // killed.
  bool rest();

 private:
  THD *thd_;
  const TableCounts &counts_;
  const uint64_t percent_;  // of the time
  uint64_t worked_;         // the thread's own time at the last rest, in nanoseconds
  uint64_t changes_;        // of the table, then
};

}  // namespace shale_sql
