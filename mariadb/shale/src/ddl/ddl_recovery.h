// After a crash: statements that change tables.
#pragma once

#include "engine/errors.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>

class THD;
struct handlerton;

namespace shale_sql {

// The files that the server keeps of a partitioned table.
struct TableFiles {
  bool frm = false;
  bool list = false;
};

// What is known of tables and their files since the plugin began.
struct DdlRecovery {
  // By the path of the table, as they were when the plugin began.
  std::map<std::string, TableFiles> files_at_start;
  // Tables that the server has tried to rename in vain since: their .frm may have gone without
  // them. Like the map above it is used by the thread that starts the server only.
  std::set<std::string> not_renamed;
  std::atomic<bool> recovering{true};

  std::mutex lost_lock;
  // The tables without a .frm file when the server began, and not found again since.
  std::set<std::string> lost_tables;
};

void fill_recovery(handlerton *hton);
// Before the server finishes or undoes what a crash has ended: partitions come to where it looks
// for them, and what files they have is noted.
Error begin_recovery();
// Whether the server is at that, and may ask for what was done before the crash.
bool is_recovering();
// The partition at a path could not be renamed: its .frm may go without it, and it is to be kept.
void note_not_renamed(const std::string &path);
// What is to be done of a table that has lost its .frm file.
constexpr const char *kWayOut = "restore that file (with partitions: and the .par file), or remove "
                                "the table by DROP TABLE";
// Whether a table has lost its .frm file, as far as is known: it may be back. Only DROP TABLE and
// DROP DATABASE remove such a one.
bool is_lost(const std::string &path);
Error note_lost(const std::string &path);
Error note_not_lost(const std::string &path);
// The folder of a database goes, whose tables the server has dropped: those that it did not find go
// too, with their lists of partitions. What cannot be done is logged.
void drop_lost_tables(THD *thd, std::string folder);

}  // namespace shale_sql
