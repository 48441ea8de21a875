// What is being built of a table while others write to it.
#pragma once

#include "server.h"

#include "engine/changed_rows.h"
#include "engine/index_build.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace shale_sql {

// An index that the table's definition does not have yet, over the columns that it has.
struct BuildingIndex {
  std::vector<KEY_PART_INFO> parts;  // by `fieldnr`; they name no field of a handler
  std::shared_ptr<IndexBuild> build;
  bool is_spatial = false;
};

// Those of one ALTER TABLE.
struct BuildingIndexes {
  uint64_t number = 0;  // another one for each ALTER TABLE of the table
  std::vector<BuildingIndex> indexes;
  // Where others put the keys of the rows that they change; nullptr: `indexes` are enough.
  std::shared_ptr<ChangedRows> rows;
};

// What of that writers are to know: all of them from one moment on, at which nobody writes.
class Building {
 public:
  // To be called while the table's metadata lock keeps writers off.
  void publish(std::vector<BuildingIndex> indexes, std::shared_ptr<ChangedRows> rows);
  // At any time: what was written so far is of no use then.
  void withdraw();

  // 0: nothing is being built. It costs a statement nothing but this.
  uint64_t number() const { return number_.load(std::memory_order_acquire); }
  std::shared_ptr<const BuildingIndexes> indexes() const;

 private:
  std::atomic<uint64_t> number_{0};
  mutable std::mutex lock_;
  uint64_t last_ = 0;
  std::shared_ptr<const BuildingIndexes> now_;
};

}  // namespace shale_sql
