// A copy of the database that fits one place of the binary log.

#include "server.h"

#include "checkpoint.h"
#include "engine.h"
#include "errors.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <shared_mutex>

namespace shale_sql {

namespace {

// Of the last commit that the engine has, if there is a binary log: the server makes transactions
// visible in the order of the log, with this lock held.
struct Place {
  std::string file;
  my_off_t position = 0;
};

Place place_of_binary_log() {
  Place place;
  if (!mysql_bin_log.is_open()) return place;
  place.file = mysql_bin_log.last_commit_pos_file;
  place.position = mysql_bin_log.last_commit_pos_offset;
  return place;
}

// The last component only: `mysqld-bin.000003`, as SHOW MASTER STATUS has it.
std::string file_of(const std::string &path) {
  size_t slash = path.find_last_of(FN_LIBCHAR);
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

int write_place(const std::string &path, const Place &place) {
  std::string text = "file=" + file_of(place.file) +
                     "\nposition=" + std::to_string(place.position) + "\n";
  File file = my_create(path.c_str(), 0644, O_WRONLY | O_EXCL, MYF(0));
  bool good = file >= 0;
  if (good) {
    const auto *bytes = reinterpret_cast<const uchar *>(text.data());
    good = my_write(file, bytes, text.size(), MYF(MY_NABP)) == 0 && my_sync(file, MYF(0)) == 0;
    good = my_close(file, MYF(0)) == 0 && good;
  }
  if (good) return 0;
  return failed(kErrEngine, "could not write " + path + ": " + strerror(my_errno));
}

// How many loads have committed a part and go on. It grows with the mutex shared, and stays what it
// is, and so do the parts, with the mutex held alone.
std::atomic<unsigned> loads_in_parts{0};
std::shared_mutex parts_mutex;

int refuse_beside_loads() {
  if (loads_in_parts.load() == 0) return 0;
  return failed(kErrEngine,
                "a statement with shale_bulk_load=1 has committed a part of its rows: wait until it "
                "has ended, or kill it");
}

}  // namespace

int LoadInParts::commit(shale_txn *part) {
  std::shared_lock<std::shared_mutex> lock(parts_mutex);
  if (!begun_) loads_in_parts++;
  begun_ = true;
  return number_of(shale_txn_commit(part, false));
}

void LoadInParts::end() {
  if (begun_) loads_in_parts--;
  begun_ = false;
}

int make_checkpoint(const std::string &folder) {
  if (int error = refuse_beside_loads()) return error;
  // Most is written to files before commits have to wait for the rest.
  if (int error = number_of(shale_flush(engine.db, nullptr))) return error;
  std::unique_lock<std::shared_mutex> no_parts(parts_mutex);
  if (int error = refuse_beside_loads()) return error;
  mysql_mutex_lock(&LOCK_commit_ordered);
  Place place = place_of_binary_log();
  int error = number_of(shale_checkpoint(engine.db, folder.c_str()));
  mysql_mutex_unlock(&LOCK_commit_ordered);
  if (error != 0 || place.file.empty()) return error;
  return write_place(folder + ".binlog-position", place);
}

}  // namespace shale_sql
