// The database of the server, which start.cc opens and closes.

#include "engine/engine.h"

namespace shale_sql {

Engine engine;

}  // namespace shale_sql
