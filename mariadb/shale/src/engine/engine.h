// The one database of a server, while it is open (start.h opens it).
#pragma once

#include "engine/catalog.h"
#include "engine/handles.h"

#include <string>

struct handlerton;

namespace shale_sql {

struct Engine {
  shale_db *db = nullptr;
  handlerton *hton = nullptr;
  Catalog catalog;
  std::string folder;  // of the database
};

extern Engine engine;

}  // namespace shale_sql
