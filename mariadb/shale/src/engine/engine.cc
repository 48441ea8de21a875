// The one pointer to what lives while the plugin is started.

#include "engine/engine.h"

#include "server.h"

namespace shale_sql {

namespace {

std::unique_ptr<Engine> started;

}  // namespace

Engine::Engine(handlerton *hton, OpenTables *tables, KeptResults *kept_results,
               LoadGate *load_gate, InDoubt *in_doubt, WaitReports *waits, DdlRecovery *recovery)
    : hton(hton),
      folder(std::string(mysql_real_data_home) + kFolder),
      tables(*tables),
      kept_results(*kept_results),
      load_gate(*load_gate),
      in_doubt(*in_doubt),
      waits(*waits),
      recovery(*recovery) {}

Engine::~Engine() = default;

Engine &engine() { return *started; }

bool engine_is_started() { return started != nullptr; }

void set_engine(std::unique_ptr<Engine> engine) { started = std::move(engine); }

}  // namespace shale_sql
