// What lives while the plugin is started: one object, which plugin/start.cc makes and destroys.
#pragma once

#include "engine/catalog.h"
#include "engine/failed_reference.h"
#include "engine/handles.h"
#include "engine/row_counts.h"
#include "engine/unsynced.h"

#include <memory>
#include <mutex>
#include <string>

struct handlerton;

namespace shale_sql {

// That of the database, in the server's data folder. It begins with a sign that no schema's folder
// has, as those of other engines do.
constexpr const char *kFolder = "#shale";

// Parts of later folders, which alone know what is in them.
class KeptResults;      // tables/query_cache.h
class InDoubt;          // txn/in_doubt.h
class WaitReports;      // txn/waits.h
struct OpenTables;      // tables/shared_table.h
struct LoadGate;        // txn/load_in_parts.h
struct DdlRecovery;     // ddl/ddl_recovery.h

// Parts that change while others use them have a lock of their own, or are atomic.
struct Engine {
  Engine(handlerton *hton, OpenTables *tables, KeptResults *kept_results, LoadGate *load_gate,
         InDoubt *in_doubt, WaitReports *waits, DdlRecovery *recovery);
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;
  virtual ~Engine();

  // These three do not change while it is open.
  shale_db *db = nullptr;
  handlerton *const hton;
  const std::string folder;  // of the database

  Catalog catalog;
  RowCounts rows;
  Unsynced unsynced;
  FailedReference failed_reference;
  std::mutex checkpoint_lock;  // of who makes a copy

  OpenTables &tables;
  KeptResults &kept_results;
  LoadGate &load_gate;
  InDoubt &in_doubt;
  WaitReports &waits;
  DdlRecovery &recovery;
};

// That of this server, between the start of the plugin and its end.
Engine &engine();
// Tables of information_schema may outlive the engine, or be there without it.
bool engine_is_started();
// From now on it is that of this server; nullptr: there is none any more.
void set_engine(std::unique_ptr<Engine> engine);

}  // namespace shale_sql
