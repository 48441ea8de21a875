// SHOW ENGINE SHALE STATUS.
#pragma once

struct handlerton;

namespace shale_sql {

void fill_status(handlerton *hton);

}  // namespace shale_sql
