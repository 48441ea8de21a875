// Indexes that have any number of entries of one row: of its words, of the cells that it covers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

typedef unsigned char uchar;

struct ManyEntry {
  std::string key, value;

  bool operator==(const ManyEntry &other) const {
    return key == other.key && value == other.value;
  }
};

// Of one row, in the order of their keys, no key twice.
using ManyEntries = std::vector<ManyEntry>;

class ManyCodec {
 public:
  virtual ~ManyCodec() = default;

  // The entries of the row in `record` whose primary key is `primary`.
  virtual void pack(const uchar *record, std::string_view primary, ManyEntries *out) const = 0;
  // The primary key within an entry; false: the entry is damaged.
  virtual bool primary_of(std::string_view key, std::string_view value,
                          std::string_view *primary) const = 0;
};

// What becomes of the entries of a row that changes: `gone(key)` of those that are no more,
// `put(entry)` of those that are new or have another value, `kept(entry)` of the others.
template <class Gone, class Put, class Kept>
void compare_entries(const ManyEntries &was, const ManyEntries &is, Gone gone, Put put, Kept kept) {
  auto old = was.begin();
  for (const ManyEntry &entry : is) {
    while (old != was.end() && old->key < entry.key) gone((old++)->key);
    const bool there = old != was.end() && old->key == entry.key;
    if (there && old->value == entry.value) {
      kept(entry);
    } else {
      put(entry);
    }
    if (there) ++old;
  }
  while (old != was.end()) gone((old++)->key);
}

}  // namespace shale_sql
