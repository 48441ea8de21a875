// A copy of the database, and what must not be under way meanwhile.
#pragma once

#include <string>

struct shale_txn;

namespace shale_sql {

// A copy of the database in a folder, which must not exist, by hard links (`SET GLOBAL
// shale_checkpoint`): as of one place of the binary log, which is written into a file beside it,
// `folder`.binlog-position. Refused while a load in parts is under way. 0, or an error's number.
int make_checkpoint(const std::string &folder);

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
  void end();

 private:
  bool begun_ = false;
};

}  // namespace shale_sql
