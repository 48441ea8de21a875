// The object itself; nothing is opened or closed with it.

#include "engine.h"

namespace shale_sql {

Engine engine;

}  // namespace shale_sql
