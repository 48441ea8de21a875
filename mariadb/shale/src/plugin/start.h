// Opening the database when the plugin begins, and all that goes on while it is open.
#pragma once

struct handlerton;

namespace shale_sql {

// Makes the engine and opens its database in the server's data directory; closes it. False: it was
// not opened. What goes wrong is in the server's error log.
bool open_engine(handlerton *hton);
void close_engine();

}  // namespace shale_sql
