// Opening the database when the plugin begins, and all that goes on while it is open.
#pragma once

struct handlerton;

namespace shale_sql {

// Makes the engine and opens its database in the server's data directory; closes it. 0, or an
// error's number; why it was not opened is in the server's error log.
int open_engine(handlerton *hton);
int close_engine();

}  // namespace shale_sql
