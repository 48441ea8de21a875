// A copy of the database, and what must not be under way meanwhile.
#pragma once

#include <string>

struct handlerton;
struct shale_txn;

namespace shale_sql {

// Fills in what the server calls for a backup.
void fill_backup(handlerton *hton);

// A copy of the database in a folder, which must not exist, by hard links (`SET GLOBAL
// shale_checkpoint`). With a binary log: as of one place of it, which is written into a file beside
// the copy, `folder`.binlog-position: exactly, if it is done in BACKUP STAGE BLOCK_COMMIT; else
// what is under way of XA, DDL, or with tables of Aria beside may be on either side. Refused while
// a load in parts is under way. 0, or an error's number.
int make_checkpoint(const std::string &folder);

// If the database was a copy until now: rolls back the transactions that the server had prepared
// when it was made, which are in the binary log behind the copy's place, or never were. Before the
// server asks for prepared ones. 0, or an error's number.
int begin_copy_of_database();

// A load that is committed in parts (shale_bulk_load), and goes to the binary log as a whole at its
// end: of a copy with some of the parts the binary log would not make the original. It counts from
// its first part to the end of its transaction.
class LoadInParts {
 public:
  LoadInParts() = default;
  LoadInParts(const LoadInParts &) = delete;
  LoadInParts &operator=(const LoadInParts &) = delete;
  ~LoadInParts() { end(); }

  // Commits a part, and waits for a copy that is being made. 0, or an error's number.
  int commit(shale_txn *part);
  // Where commits are durable: the parts are, which were committed without.
  int make_durable();
  void end();

 private:
  bool begun_ = false;
  bool durable_ = true;
};

}  // namespace shale_sql
