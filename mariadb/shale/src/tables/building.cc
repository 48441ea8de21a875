// Telling writers of what is being built.

#include "tables/building.h"

namespace shale_sql {

void Building::publish(std::vector<BuildingIndex> indexes, std::shared_ptr<ChangedRows> rows) {
  std::lock_guard<std::mutex> one_at_a_time(lock_);
  auto published = std::make_shared<BuildingIndexes>();
  published->number = ++last_;
  published->indexes = std::move(indexes);
  published->rows = std::move(rows);
  now_ = std::move(published);
  number_.store(last_, std::memory_order_release);
}

void Building::withdraw() {
  // Its trees may go with it, which is not to be waited for under the lock.
  std::shared_ptr<const BuildingIndexes> was;
  std::lock_guard<std::mutex> one_at_a_time(lock_);
  was.swap(now_);
  number_.store(0, std::memory_order_release);
}

std::shared_ptr<const BuildingIndexes> Building::indexes() const {
  std::lock_guard<std::mutex> one_at_a_time(lock_);
  return now_;
}

}  // namespace shale_sql
