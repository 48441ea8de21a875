// Huge pages for what asks for them by name.
#pragma once

namespace shale_sql {

// The server, once it has started, forbids its process huge pages, since what is allocated in small
// pieces took much memory with them. Memtables ask for theirs by name, use them whole and give them
// back whole. Where the system can (Linux 6.18), those who ask are excepted. Answers whether there
// is nothing left to do.
bool except_advised_from_small_pages();

}  // namespace shale_sql
