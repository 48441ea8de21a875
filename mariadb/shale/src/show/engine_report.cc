// Asks the engine for a report, which is JSON.

#include "show/engine_report.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/handles.h"

namespace shale_sql {

Json engine_report(int kind) {
  shale_bytes *found = nullptr;
  if (Error error = consume_error(shale_report(engine().db, kind, &found))) {
    log_error("a report cannot be had: " + error.text());
    return Json();
  }
  BytesHandle bytes(found);
  return Json::parse(view_of(bytes));
}

Json engine_statistics() { return engine_report(SHALE_REPORT_STATS); }

}  // namespace shale_sql
