// What the server has asked of a handler.
#pragma once

#include <string>

class THD;

namespace shale_sql {

// Whether the statement changes a table's definition, which may copy it.
bool alters_table(THD *thd);

// How rows are locked: each is a shale_lock.
struct Locking {
  int mode = 0;            // of the statement
  int of_table = 0;        // of those within LOCK TABLES, but for plain reads
  bool by_server = false;  // between external_lock and its end
};

// How the server wants rows to be read.
struct Asked {
  bool skips_locked = false;   // SKIP LOCKED
  bool whole_rows = false;     // for writers: the whole row is needed to write it anew
  bool keys_only = false;      // what an entry of the index has
  bool base_columns = false;   // all columns are read: others are computed of them
  bool checks_period = false;  // the search is the server's, for a row that is in the way
  bool in_range = false;       // index_read_map is called by read_range_first,
  bool has_range_end = false;  // which has told the end
  std::string range_end;
  bool has_range_start = false;  // of a range that is read backward: prepare_range_scan has told it
  std::string range_start;
};

}  // namespace shale_sql
