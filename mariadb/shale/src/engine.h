// The one database of a server, and the settings that are read while it runs.
#pragma once

#include "catalog.h"
#include "handles.h"

#include <string>

struct handlerton;
class THD;

namespace shale_sql {

struct Engine {
  shale_db *db = nullptr;
  handlerton *hton = nullptr;
  Catalog catalog;
  std::string folder;  // of the database
};

extern Engine engine;

// Opens the database in the server's data directory; closes it. 0, or an error's number.
int open_engine(handlerton *hton);
int close_engine();

// Settings (plugin.cc).
bool sync_at_commit();
unsigned long lock_wait_millis(THD *thd);
bool bulk_load(THD *thd);

// New trees, compressed as `codec` says (empty: by default), with dictionaries where they pay: all,
// or none.
int create_trees(const std::vector<std::string> &names, const std::string &codec, bool dictionary,
                 std::vector<TreeHandle> *trees);
// Drops trees that no table has any more; one that is not there is none to drop, and of what fails
// the log tells.
void drop_trees(const std::vector<std::string> &names);
// Whether a codec is known, with the reason if not.
bool check_codec(const std::string &codec, std::string *why);

}  // namespace shale_sql
