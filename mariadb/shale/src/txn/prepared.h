// Transactions that are prepared and have no connection: found and decided by the server's name.
#pragma once

#include "engine/errors.h"

#include <string>

struct handlerton;
struct xid_t;

namespace shale_sql {

// The server's name of a transaction, as the engine keeps it.
std::string bytes_of_xid(const xid_t &xid);

// Fills in what the server calls about them.
void fill_prepared(handlerton *hton);

// Rolls back prepared transactions, but for those that users have named (XA). 0, or an error's
// number.
Error roll_back_what_the_server_prepared();

}  // namespace shale_sql
