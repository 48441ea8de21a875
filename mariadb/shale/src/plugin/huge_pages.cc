// What the system is told about huge pages of the process.

#include "plugin/huge_pages.h"

#include "server.h"

#include <sys/prctl.h>

namespace shale_sql {

bool except_advised_from_small_pages() {
  // The headers of older systems have no name for it, and older systems refuse it.
  constexpr unsigned long kExceptAdvised = 1ul << 1;
  if (!mysqld_server_started) return false;
  // Somebody may have decided otherwise.
  if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) {
    prctl(PR_SET_THP_DISABLE, 1, kExceptAdvised, 0, 0);
  }
  return true;
}

}  // namespace shale_sql
