// The last statement that a foreign key refused, for SHOW ENGINE SHALE STATUS.
#pragma once

#include <cstdint>
#include <ctime>
#include <mutex>
#include <string>

namespace shale_sql {

class FailedReference {
 public:
  struct Last {
    uint64_t count = 0;  // since the start, this one too; 0: there was none
    time_t when = 0;
    std::string text;
  };

  void note(const std::string &text) {
    std::lock_guard<std::mutex> lock(lock_);
    last_.count++;
    last_.when = time(nullptr);
    last_.text = text;
  }
  Last last() const {
    std::lock_guard<std::mutex> lock(lock_);
    return last_;
  }

 private:
  mutable std::mutex lock_;
  Last last_;
};

}  // namespace shale_sql
