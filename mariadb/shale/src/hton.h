// The server's calls about transactions, and about the engine as a whole.
#pragma once

struct handlerton;

namespace shale_sql {

// Fills in what the server calls.
void fill_transactions(handlerton *hton);

// Rolls back prepared transactions, but for those that users have named (XA). 0, or an error's
// number.
int roll_back_what_the_server_prepared();

}  // namespace shale_sql
