// The server's calls about transactions, and about the engine as a whole.
#pragma once

struct handlerton;

namespace shale_sql {

// Fills in what the server calls.
void fill_transactions(handlerton *hton);

}  // namespace shale_sql
