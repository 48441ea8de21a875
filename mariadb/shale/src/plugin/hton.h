// The server's calls about transactions of connections, and about logs.
#pragma once

struct handlerton;

namespace shale_sql {

// Fills in what the server calls of a connection's transaction, and its calls about binary logs.
void fill_transactions(handlerton *hton);

}  // namespace shale_sql
