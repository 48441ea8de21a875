// information_schema.SHALE_TRANSACTIONS and SHALE_LOCKS: who is under way, and who waits for whom.
#pragma once

namespace shale_sql {

int start_transactions(void *place);
int start_locks(void *place);

}  // namespace shale_sql
