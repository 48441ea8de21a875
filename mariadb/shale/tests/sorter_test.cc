// The sorter: order, entries of one key, many runs, large entries, a folder that is not there, a
// full disk.

#include "check.h"
#include "load/sorter.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <sys/resource.h>
#include <vector>

namespace shale_sql {
namespace {

Chance chance;
std::string folder;

typedef std::vector<std::pair<std::string, std::string>> Entries;

std::string some_key(bool few) {
  std::string key;
  for (uint64_t n = chance.below(few ? 3 : 20); n > 0; n--)
    key += static_cast<char>(few ? 'a' + chance.below(3) : chance.below(256));
  return key;
}

size_t files_in(const std::string &name) {
  DIR *opened = opendir(name.c_str());
  CHECK(opened);
  size_t n = 0;
  while (const dirent *entry = readdir(opened)) n += entry->d_name[0] != '.';
  closedir(opened);
  return n;
}

// The number of bytes that were spilled.
uint64_t sorts(size_t count, size_t memory, size_t longest_value, bool few) {
  Sorter sorter(folder, memory);
  Entries entries;
  for (size_t i = 0; i < count; i++) {
    std::string value = std::to_string(i);
    if (longest_value > value.size()) value.resize(chance.below(longest_value) + value.size(), 'v');
    entries.emplace_back(some_key(few), value);
    CHECK(sorter.add(entries.back().first, entries.back().second));
  }
  CHECK(sorter.finish());
  CHECK(files_in(folder) == 0);  // they have no names
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string_view key, value;
  for (const auto &entry : entries) {
    CHECK(sorter.next(&key, &value));
    CHECK(key == entry.first && value == entry.second);
  }
  CHECK(!sorter.next(&key, &value) && !sorter.next(&key, &value));
  CHECK(sorter.error().empty());
  return sorter.spilled_bytes();
}

void orders() {
  CHECK(sorts(0, 1 << 20, 0, false) == 0);
  CHECK(sorts(1, 1 << 20, 0, false) == 0);
  CHECK(sorts(2000, 1 << 20, 0, true) == 0);
  // Of one key each entry is in some run: they come in the order of being added.
  CHECK(sorts(60000, 256 << 10, 20, true) > 0);
  CHECK(sorts(60000, 256 << 10, 100, false) > 0);
  // More runs than there is memory to merge at once: merged in steps.
  const uint64_t once = 30000 * 200;
  CHECK(sorts(30000, 256 << 10, 400, true) > once * 3 / 2);
  // Entries larger than all the memory.
  CHECK(sorts(12, 256 << 10, 3 << 20, true) > 0);
}

void folder_is_missing() {
  Sorter sorter(folder + "/none", 256 << 10);
  const std::string value(1000, 'v');
  size_t added = 0;
  while (added < 1000 && sorter.add(std::to_string(added), value)) added++;
  CHECK(added > 0 && added < 1000);
  CHECK(sorter.error().find("/none'") != std::string::npos);
  CHECK(sorter.error().find("errno 2)") != std::string::npos);
  std::string_view key, other;
  CHECK(!sorter.add("k", "v") && !sorter.finish() && !sorter.next(&key, &other));
}

// Files that cannot grow are what a full disk is like: at each size, in spills and merges.
void disk_is_full() {
  signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
  unsigned failed = 0;
  for (rlim_t most = 1; most < (8 << 20); most = most * 3 / 2 + 1) {
    rlimit limit = old;
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    Sorter sorter(folder, 256 << 10);
    const std::string payload(200, 'v');
    size_t added = 0;
    while (added < 8000 && sorter.add(std::to_string(chance.next()), payload)) added++;
    std::string_view key, value;
    size_t got = 0;
    if (added == 8000 && sorter.finish()) {
      while (sorter.next(&key, &value)) got++;
    }
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    // All entries or an error, never some of them.
    CHECK(sorter.error().empty() ? got == 8000 : got == 0);
    if (!sorter.error().empty()) {
      failed++;
      CHECK(sorter.error().find("write") != std::string::npos);
    }
  }
  CHECK(failed > 5);
}

}  // namespace
}  // namespace shale_sql

int main() {
  char name[] = "/tmp/shale-sorter-test-XXXXXX";
  CHECK(mkdtemp(name));
  shale_sql::folder = name;
  shale_sql::orders();
  shale_sql::folder_is_missing();
  shale_sql::disk_is_full();
  CHECK(remove(name) == 0);
  printf("sorter: ok\n");
}
