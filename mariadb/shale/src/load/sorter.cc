// Sorting in memory, runs, and the merge of runs by a heap.

#include "load/sorter.h"

#include "load/sort_run.h"

#include <algorithm>
#include <cstring>

namespace shale_sql {

namespace {

// Reads of runs are worth it from here on: fewer runs are merged at once if memory is short.
constexpr size_t kLeastBuffer = 64 << 10;
constexpr size_t kMostBuffer = 1 << 20;
constexpr size_t kMostRuns = 500;  // open files

uint64_t head_of(std::string_view key) {
  uint64_t head = 0;
  memcpy(&head, key.data(), std::min(key.size(), sizeof(head)));
  return __builtin_bswap64(head);
}

}  // namespace

Sorter::Sorter(std::string folder, size_t memory_bytes)
    : folder_(std::move(folder)), memory_bytes_(std::max(memory_bytes, 4 * kLeastBuffer)) {}

Sorter::~Sorter() = default;

bool Sorter::fail(const char *what, int error_number) {
  error_ = std::string("cannot ") + what + " a temporary file for sorting in '" + folder_ + "': ";
  if (error_number) {
    error_ += std::string(strerror(error_number)) + " (errno " + std::to_string(error_number) +
              "); see to it that the folder exists, is writable and has room";
  } else {
    error_ += "it has other bytes than were written; check the disk";
  }
  return false;
}

bool Sorter::before(const Entry &a, const Entry &b) const {
  if (a.head != b.head) return a.head < b.head;
  const int order = memcmp(&arena_[a.offset], &arena_[b.offset],
                           std::min(a.key_bytes, b.key_bytes));
  if (order != 0) return order < 0;
  if (a.key_bytes != b.key_bytes) return a.key_bytes < b.key_bytes;
  return a.offset < b.offset;
}

void Sorter::sort_entries() {
  std::sort(entries_.begin(), entries_.end(),
            [this](const Entry &a, const Entry &b) { return before(a, b); });
}

bool Sorter::add(std::string_view key, std::string_view value) {
  if (!error_.empty()) return false;
  // Half of the memory for bytes, half for where they are, taken at once: vectors that grow would
  // hold twice as much. Pages that are not written to cost nothing.
  const size_t n = key.size() + value.size() + 1;
  const size_t most_bytes = memory_bytes_ / 2, most_entries = most_bytes / sizeof(Entry);
  const bool full = arena_.size() + n > most_bytes || entries_.size() == most_entries;
  if (full && !entries_.empty() && !spill()) return false;
  if (entries_.empty()) {
    arena_.reserve(std::max(most_bytes, n));
    entries_.reserve(most_entries);
  }
  // A byte behind each entry, so that offsets order them even if they are empty.
  const size_t offset = arena_.size();
  arena_.resize(offset + n);
  if (!key.empty()) memcpy(&arena_[offset], key.data(), key.size());
  if (!value.empty()) memcpy(&arena_[offset + key.size()], value.data(), value.size());
  entries_.push_back(Entry{head_of(key), offset, static_cast<uint32_t>(key.size()),
                           static_cast<uint32_t>(value.size())});
  return true;
}

// Writes what is held as one more run.
bool Sorter::spill() {
  sort_entries();
  std::unique_ptr<SortRun> run(new SortRun);
  if (!run->create(folder_)) return fail(run->failed(), run->error_number());
  for (const Entry &entry : entries_) {
    const char *key = &arena_[entry.offset];
    if (!run->write({key, entry.key_bytes}, {key + entry.key_bytes, entry.value_bytes},
                    kMostBuffer))
      return fail(run->failed(), run->error_number());
  }
  if (!run->end_writing()) return fail(run->failed(), run->error_number());
  spilled_bytes_ += run->bytes();
  runs_.push_back(std::move(run));
  arena_.clear();
  entries_.clear();
  return true;
}

bool Sorter::finish() {
  if (!error_.empty()) return false;
  if (runs_.empty()) {
    sort_entries();
    return true;
  }
  if (!entries_.empty() && !spill()) return false;
  std::vector<char>().swap(arena_);
  std::vector<Entry>().swap(entries_);
  // Neighbours are merged, and stay at their place: entries of one key keep their order.
  const size_t most = std::min(kMostRuns, memory_bytes_ / kLeastBuffer - 1);
  for (size_t first = 0; runs_.size() > most;) {
    const size_t count = std::min({most, runs_.size() - most + 1, runs_.size() - first});
    if (count < 2) {
      first = 0;
      continue;
    }
    std::unique_ptr<SortRun> merged(new SortRun);
    if (!merge(first, count, merged.get())) return false;
    runs_.erase(runs_.begin() + static_cast<long>(first) + 1,
                runs_.begin() + static_cast<long>(first + count));
    runs_[first++] = std::move(merged);
  }
  return start_merge(0, runs_.size());
}

bool Sorter::merge(size_t first, size_t count, SortRun *to) {
  if (!to->create(folder_)) return fail(to->failed(), to->error_number());
  if (!start_merge(first, count)) return false;
  std::string_view key, value;
  while (next(&key, &value)) {
    if (!to->write(key, value, kLeastBuffer)) return fail(to->failed(), to->error_number());
  }
  if (!error_.empty()) return false;
  if (!to->end_writing()) return fail(to->failed(), to->error_number());
  spilled_bytes_ += to->bytes();
  return true;
}

// Of entries of one key, those of the older run come first.
bool Sorter::run_before(size_t a, size_t b) const {
  const int order = runs_[a]->key().compare(runs_[b]->key());
  return order != 0 ? order < 0 : a < b;
}

void Sorter::sift(size_t at) {
  const size_t run = heap_[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && run_before(heap_[child + 1], heap_[child])) child++;
    if (!run_before(heap_[child], run)) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = run;
}

bool Sorter::start_merge(size_t first, size_t count) {
  heap_.clear();
  popped_ = false;
  const size_t buffer = std::min(kMostBuffer, memory_bytes_ / (count + 1));
  for (size_t i = first; i < first + count; i++) {
    runs_[i]->start_reading(buffer);
    if (!runs_[i]->read()) return fail(runs_[i]->failed(), runs_[i]->error_number());
    if (!runs_[i]->at_end()) heap_.push_back(i);
  }
  for (size_t i = heap_.size() / 2; i-- > 0;) sift(i);
  return true;
}

bool Sorter::next(std::string_view *key, std::string_view *value) {
  if (!error_.empty()) return false;
  if (runs_.empty()) {
    if (next_entry_ == entries_.size()) return false;
    const Entry &entry = entries_[next_entry_++];
    const char *from = &arena_[entry.offset];
    *key = std::string_view(from, entry.key_bytes);
    *value = std::string_view(from + entry.key_bytes, entry.value_bytes);
    return true;
  }
  if (popped_) {
    SortRun &run = *runs_[heap_[0]];
    if (!run.read()) return fail(run.failed(), run.error_number());
    if (run.at_end()) {
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    if (heap_.size() > 1) sift(0);
  }
  popped_ = !heap_.empty();
  if (!popped_) return false;
  *key = runs_[heap_[0]]->key();
  *value = runs_[heap_[0]]->value();
  return true;
}

}  // namespace shale_sql
