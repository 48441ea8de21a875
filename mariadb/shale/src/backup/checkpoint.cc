// A copy of the database that fits one place of the binary log.

#include "backup/checkpoint.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "txn/in_doubt.h"
#include "txn/load_in_parts.h"
#include "txn/prepared.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace shale_sql {

namespace {

// In the copy: it has not been opened yet.
constexpr const char *kMark = "ROLL-BACK-PREPARED";

// Of the binary log, if there is one.
struct Place {
  std::string file;
  my_off_t position = 0;
};

// The binary log as it is, while all that is in it is visible: groups of transactions go there with
// the first lock held, and become visible in that order with the last one. Taken in the server's
// own order. Not of these groups are XA and DDL, and transactions with a table of Aria.
class StillBinaryLog {
 public:
  StillBinaryLog() {
    mysql_mutex_lock(mysql_bin_log.get_log_lock());
    mysql_mutex_lock(&LOCK_after_binlog_sync);
    mysql_mutex_lock(&LOCK_commit_ordered);
  }
  ~StillBinaryLog() {
    mysql_mutex_unlock(&LOCK_commit_ordered);
    mysql_mutex_unlock(&LOCK_after_binlog_sync);
    mysql_mutex_unlock(mysql_bin_log.get_log_lock());
  }
  Place end() {
    Place place;
    if (!mysql_bin_log.is_open()) return place;
    LOG_INFO info;
    mysql_bin_log.raw_get_current_log(&info);
    place.file = info.log_file_name;
    place.position = info.pos;
    return place;
  }
};

// The last component only: `mysqld-bin.000003`, as SHOW MASTER STATUS has it.
std::string file_of(const std::string &path) {
  size_t slash = path.find_last_of(FN_LIBCHAR);
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Error write_file(const std::string &path, const std::string &text) {
  File file = my_create(path.c_str(), 0644, O_WRONLY | O_EXCL, MYF(MY_SYNC_DIR));
  bool good = file >= 0;
  if (good) {
    const auto *bytes = reinterpret_cast<const uchar *>(text.data());
    good = my_write(file, bytes, text.size(), MYF(MY_NABP)) == 0 && my_sync(file, MYF(0)) == 0;
    good = my_close(file, MYF(0)) == 0 && good;
  }
  if (good) return 0;
  return Error(kErrEngine, "could not write " + path + ": " + strerror(my_errno));
}

Error write_place(const std::string &path, const Place &place) {
  return write_file(path, "file=" + file_of(place.file) +
                              "\nposition=" + std::to_string(place.position) + "\n");
}

Error refuse_beside_loads() {
  return Error(kErrEngine,
                "a statement with shale_bulk_load=1 has committed a part of its rows: wait until "
                "it has ended");
}

}  // namespace

Error make_checkpoint(const std::string &folder) {
  std::lock_guard<std::mutex> alone(engine().checkpoint_lock);
  std::string place_file = folder + ".binlog-position";
  if (mysql_bin_log.is_open() && my_access(place_file.c_str(), F_OK) == 0) {
    return Error(kErrEngine,
                  place_file + " is there: of another copy, which has been moved away?");
  }
  if (Error error = engine().in_doubt.finish_commits()) return error;
  // Most is written to files before commits have to wait for the rest.
  if (Error error = consume_error(shale_flush(engine().db, nullptr))) return error;
  // Not waited for: commits may be held up for this, and a load may take long.
  NoParts no_parts;
  if (mysql_bin_log.is_open() && no_parts.is_beside_loads()) return refuse_beside_loads();
  Place place;
  {
    StillBinaryLog log;
    place = log.end();
    if (engine().in_doubt.any_commits()) {
      return Error(kErrEngine, "a transaction could not be committed just now: try again");
    }
    if (Error error = consume_error(shale_checkpoint(engine().db, folder.c_str()))) return error;
  }
  if (Error error = write_file(folder + "/" + kMark, "")) return error;
  return place.file.empty() ? 0 : write_place(place_file, place);
}

Error begin_copy_of_database() {
  std::string mark = engine().folder + "/" + kMark;
  if (my_access(mark.c_str(), F_OK) != 0) return 0;
  if (Error error = roll_back_what_the_server_prepared()) return error;
  // Durably: what is prepared from now on is not of the copy.
  if (my_delete(mark.c_str(), MYF(MY_SYNC_DIR)) == 0) return 0;
  return Error(kErrEngine, "could not remove " + mark + ": " + strerror(my_errno));
}

void fill_backup(handlerton *hton) {
  // Nobody waits for this stage of a backup; what follows finds less to write.
  hton->prepare_for_backup = [] {
    if (Error error = consume_error(shale_flush(engine().db, nullptr))) {
      log_error("memtables were not flushed for a backup: " + error.text());
    }
  };
}

}  // namespace shale_sql
