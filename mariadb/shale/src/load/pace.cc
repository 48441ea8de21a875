// Rests are as long as the thread's own time says, not the clock's: who waits for a processor has
// left it to others already.

#include "load/pace.h"

#include "server.h"

#include "engine/settings.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

namespace shale_sql {

namespace {

constexpr uint64_t kNanosPerSecond = 1'000'000'000;
// Rests are not shorter than a scheduler's round, and KILL is seen within one.
constexpr uint64_t kShortestWork = 4'000'000;
constexpr uint64_t kSlice = 20'000'000;

uint64_t own_time() {
  timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * kNanosPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

Pace::Pace(THD *thd, const TableCounts &counts)
    : thd_(thd),
      counts_(counts),
      percent_(settings::alter_rest(thd)),
      worked_(own_time()),
      changes_(counts.changes()) {}

bool Pace::rest() {
  if (thd_killed(thd_)) return true;
  if (percent_ == 0) return false;
  const uint64_t work = own_time() - worked_;
  if (work < kShortestWork) return false;
  const uint64_t changes = counts_.changes();
  if (changes != changes_) {
    for (uint64_t left = work * percent_ / (100 - percent_); left > 0 && !thd_killed(thd_);) {
      const uint64_t slice = std::min(left, kSlice);
      std::this_thread::sleep_for(std::chrono::nanoseconds(slice));
      left -= slice;
    }
  }
  worked_ = own_time();
  changes_ = counts_.changes();
  return thd_killed(thd_);
}

}  // namespace shale_sql
