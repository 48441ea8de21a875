// Parents that a transaction has found and holds the locks of: of a further row that references one
// nothing has to be looked up, as of the lines of one order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

class KnownParents {
 public:
  // `link` is the number of a Link, `key` begins a key of its other side.
  bool has(uint64_t link, std::string_view key) const {
    if (slots_.empty()) return false;
    const Slot &slot = slots_[place_of(link, key)];
    return slot.link == link && slot.round == round_ && slot.key == key;
  }

  void add(uint64_t link, std::string_view key) {
    if (key.size() > kMostBytes) return;
    if (slots_.empty()) slots_.resize(kSlots);
    Slot &slot = slots_[place_of(link, key)];
    slot.link = link;
    slot.round = round_;
    slot.key.assign(key);
  }

  // When one of them may be gone: something was undone, or removed.
  void forget() { round_++; }

 private:
  // They bound the memory of a connection: a parent that comes to another's place takes it.
  static constexpr size_t kSlots = 256, kMostBytes = 128;

  struct Slot {
    uint64_t link = 0, round = 0;
    std::string key;
  };

  static size_t place_of(uint64_t link, std::string_view key) {
    return (std::hash<std::string_view>()(key) + link) % kSlots;
  }

  uint64_t round_ = 1;
  std::vector<Slot> slots_;
};

}  // namespace shale_sql
