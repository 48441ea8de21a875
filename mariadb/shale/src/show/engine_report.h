// What the engine says of itself.
#pragma once

#include "show/json.h"

namespace shale_sql {

// A report of a shale_report_kind; nothing (with a note in the log) if it cannot be had.
Json engine_report(int kind);
// The engine's statistics; nothing (with a note in the log) if they cannot be had.
Json engine_statistics();

}  // namespace shale_sql
