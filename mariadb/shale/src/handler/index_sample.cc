// Counting rows with equal columns in runs of neighbouring entries.

#include "handler/index_sample.h"

#include "server.h"

#include "engine/errors.h"

#include <algorithm>

namespace shale_sql {

namespace {

// A place is near enough to the one wanted after so many steps; each costs one estimate.
constexpr unsigned kSearchSteps = 24;
constexpr unsigned kRowsBetweenChecks = 256;

// Neighbours that differ in the first 1, 2, ... parts, over all runs.
class Counter {
 public:
  Counter(const KeyCodec &codec, unsigned parts) : codec_(codec), differ_(parts), jumps_(parts) {}

  // The next entry of a run; `first`: of a new one.
  bool add(std::string_view key, bool first) {
    if (!codec_.part_ends(key, &ends_) || ends_.size() < differ_.size()) return false;
    size_t common = 0, most = std::min(key.size(), before_.size());
    while (common < most && key[common] == before_[common]) common++;
    if (any_) {
      std::vector<uint64_t> &counts = first ? jumps_ : differ_;
      for (size_t part = 0; part < counts.size(); part++) counts[part] += common < ends_[part];
      pairs_ += !first;
    }
    any_ = true;
    before_.assign(key);
    return true;
  }

  std::vector<double> rows_per_key(double rows) const {
    std::vector<double> result;
    for (size_t part = 0; part < differ_.size(); part++) {
      // Each neighbour that differs begins a value; those seen are the least there are.
      double share = pairs_ == 0 ? 0 : static_cast<double>(differ_[part]) / pairs_;
      double seen = 1.0 + static_cast<double>(differ_[part] + jumps_[part]);
      double values = std::max(1.0 + share * (rows - 1.0), seen);
      result.push_back(std::max(rows / values, 1.0));
    }
    return result;
  }

 private:
  const KeyCodec &codec_;
  std::vector<uint64_t> differ_, jumps_;
  uint64_t pairs_ = 0;
  bool any_ = false;
  std::string before_;
  std::vector<size_t> ends_;
};

Error estimate(const shale_tree *tree, const std::string *upper, uint64_t exact_max,
               uint64_t *rows) {
  const char *end = upper == nullptr ? nullptr : upper->data();
  size_t length = upper == nullptr ? 0 : upper->size();
  return consume_error(shale_tree_estimate(tree, nullptr, 0, end, length, exact_max, rows, nullptr,
                                           nullptr));
}

// Eight bytes from `at` on as a number, with `filler` for those that are not there.
uint64_t number_at(const std::string &key, size_t at, unsigned char filler) {
  uint64_t number = 0;
  for (size_t i = at; i < at + 8; i++) {
    number = number << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : filler);
  }
  return number;
}

// About in the middle of two keys, as bytes.
std::string between(const std::string &low, const std::string &high) {
  size_t common = 0;
  while (common < low.size() && common < high.size() && low[common] == high[common]) common++;
  uint64_t from = number_at(low, common, 0), to = number_at(high, common, 0xff);
  uint64_t middle = from + (to - from) / 2;
  std::string key = low.substr(0, common);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(middle >> shift));
  return key;
}

// A key that has about `wanted` entries before it.
Error find_place(const shale_tree *tree, std::string low, std::string high, uint64_t wanted,
               uint64_t near, std::string *place) {
  for (unsigned step = 0; step < kSearchSteps; step++) {
    *place = between(low, high);
    if (*place == low || *place == high) return 0;
    uint64_t before = 0;
    if (Error error = estimate(tree, place, 0, &before)) return error;
    if (before > wanted + near) {
      high = *place;
    } else if (before + near < wanted) {
      low = *place;
    } else {
      return 0;
    }
  }
  return 0;
}

Error new_scan(const shale_tree *tree, const std::string &lower, ScanHandle *scan) {
  shale_scan *begun = nullptr;
  Error error = consume_error(shale_scan_new(tree, nullptr, lower.empty() ? nullptr : lower.data(),
                                       lower.size(), nullptr, 0, false, &begun));
  scan->reset(begun);
  return error;
}

std::string key_of(const ScanHandle &scan) {
  size_t length = 0;
  const void *key = shale_scan_key(scan.get(), &length);
  return std::string(static_cast<const char *>(key), length);
}

// Looks at `most` entries from `lower` on.
Error run(const shale_tree *tree, const std::string &lower, uint64_t most,
        const std::function<bool()> &stop, Counter *counter, uint64_t *looked_at) {
  ScanHandle scan;
  if (Error error = new_scan(tree, lower, &scan)) return error;
  Error error = consume_error(move_scan(scan.get(), SHALE_FIRST));
  uint64_t count = 0;
  for (; !error && count < most && at_row(scan.get()); count++) {
    size_t length = 0;
    const void *key = shale_scan_key(scan.get(), &length);
    if (!counter->add({static_cast<const char *>(key), length}, count == 0)) {
      return Error(kErrDamagedRow, "an entry of tree " + std::string(shale_tree_name(tree)) +
                                        " is damaged; CHECK TABLE says which");
    }
    if (count % kRowsBetweenChecks == 0 && stop()) return HA_ERR_ABORTED_BY_USER;
    error = consume_error(move_scan(scan.get(), SHALE_NEXT));
  }
  *looked_at += count;
  return error;
}

}  // namespace

Error sample_index(const shale_tree *tree, const KeyCodec &codec, unsigned parts, SampleSize size,
                 const std::function<bool()> &stop, std::vector<double> *rows_per_key) {
  uint64_t rows = 0;
  if (Error error = estimate(tree, nullptr, 0, &rows)) return error;
  Counter counter(codec, parts);
  uint64_t looked_at = 0;
  if (rows <= size.count_all) {
    // Twice as many as there should be: an estimate may be wrong, a scan has to end.
    if (Error error = run(tree, {}, 2 * size.count_all, stop, &counter, &looked_at)) return error;
    *rows_per_key = counter.rows_per_key(static_cast<double>(looked_at));
    return 0;
  }
  ScanHandle ends;
  if (Error error = new_scan(tree, {}, &ends)) return error;
  if (Error error = consume_error(move_scan(ends.get(), SHALE_FIRST))) return error;
  std::string low = key_of(ends);
  if (Error error = consume_error(move_scan(ends.get(), SHALE_LAST))) return error;
  std::string high = key_of(ends), place;
  for (unsigned i = 0; i < size.places; i++) {
    uint64_t wanted = static_cast<uint64_t>(static_cast<double>(rows) / size.places * i);
    place = low;
    if (i > 0) {
      Error error = find_place(tree, low, high, wanted, rows / (4 * size.places), &place);
      if (error) return error;
    }
    if (Error error = run(tree, place, size.entries, stop, &counter, &looked_at)) return error;
  }
  *rows_per_key = counter.rows_per_key(static_cast<double>(rows));
  return 0;
}

}  // namespace shale_sql
