// Ids of transactions, for tables whose rows say from which transaction to which they were current
// (`BIGINT ... AS ROW START`).
//
// The server keeps these ids in `mysql.transaction_registry`, a table of InnoDB's, and compares all
// of them as one row of numbers, which InnoDB counts. So a transaction has the id that InnoDB gives
// it: it takes part, by a row of `shale_system.versions` that comes and goes. At the commit InnoDB
// gives another, and the server writes both into the registry. The two engines commit in two
// phases, so that no row has an id that the registry lacks.
#pragma once

#include "engine/errors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

class THD;
typedef unsigned long long ulonglong;

namespace shale_sql {

class VersionIds {
 public:
  VersionIds();
  ~VersionIds();

  // The id of the connection's transaction, which has so many savepoints, for what its statement
  // writes.
  Error get(THD *thd, size_t savepoints, uint64_t *id);
  // Before the commit, which gets a number too; 0: rows have no id. InnoDB forgets of a transaction
  // that was undone in part that it has one, so it takes part again.
  Error end_id(THD *thd, ulonglong *begin, ulonglong *end);
  // The statement has ended, or was undone in part, and InnoDB's part with it.
  void end_statement() { is_of_statement_ = false; }
  // The same to a savepoint, the one after so many. What got the id after it has none any more.
  // InnoDB, if it was no part of the transaction there, has undone its own.
  void rollback_to(size_t place) {
    end_statement();
    if (place < savepoints_) id_ = 0;
  }
  // That savepoint goes, with all after it; what was written stays.
  void release(size_t place) { savepoints_ = std::min(savepoints_, place); }
  void end_transaction(THD *thd);

 private:
  struct Held;

  Error take_part(THD *thd, ulonglong *begin, ulonglong *end);

  uint64_t id_ = 0;               // that rows have; 0: none has one
  size_t savepoints_ = 0;         // that there were before the first of these rows
  bool is_of_statement_ = false;  // this statement takes part
  // Without BEGIN, InnoDB would commit as soon as the last of its tables is let go.
  std::unique_ptr<Held> held_;
};

}  // namespace shale_sql
