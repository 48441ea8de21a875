// The order in which all is opened and closed, and the thread that looks after the database.

#include "plugin/start.h"

#include "server.h"

#include "backup/checkpoint.h"
#include "ddl/ddl_recovery.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "plugin/huge_pages.h"
#include "tables/query_cache.h"
#include "tables/shared_table.h"
#include "txn/in_doubt.h"
#include "txn/load_in_parts.h"
#include "txn/waits.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

// Of the server, in none of its headers: a folder in the data folder that is no schema.
void ignore_db_dirs_append(const char *folder);

namespace shale_sql {

namespace {

struct Config {
  shale_config *config = nullptr;
  shale_error *error = shale_config_new(&config);
  ~Config() { shale_config_free(config); }
  void set(const char *name, const std::string &value) {
    if (error == nullptr) error = shale_config_set(config, name, value.c_str());
  }
};

// Once a second: with shale_durability=periodic, makes durable what was committed, and tries
// in-doubt decisions again. A thread of the plugin's own, since the setting may change at any time.
class Syncer {
 public:
  void start() {
    stopping_ = false;
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(lock_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    std::unique_lock<std::mutex> lock(lock_);
    bool failing = false, pages = false;
    while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; })) {
      if (!pages) pages = except_advised_from_small_pages();
      engine().in_doubt.try_again();
      if (settings::globals.durability != settings::kPeriodic) continue;
      lock.unlock();
      Error error = consume_error(shale_sync(engine().db));
      if (error && !failing) log_error("commits cannot be made durable: " + error.text());
      failing = bool(error);
      lock.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

// The engine with its parts of later folders, and the thread that looks after it.
struct Started final : Engine {
  explicit Started(handlerton *hton)
      : Engine(hton, &tables_part, &kept_results_part, &load_gate_part, &in_doubt_part,
               &waits_part, &recovery_part) {}

  OpenTables tables_part;
  KeptResults kept_results_part;
  LoadGate load_gate_part;
  InDoubt in_doubt_part;
  WaitReports waits_part;
  DdlRecovery recovery_part;
  Syncer syncer;
};

Error open_database(Engine *engine) {
  Config config;
  config.set("memory_bytes", std::to_string(settings::globals.memory));
  if (config.error == nullptr) {
    config.set("space_limit", std::to_string(settings::globals.space_limit));
  }
  if (config.error != nullptr) return consume_error(config.error);
  const char *folder = engine->folder.c_str();
  Error error = consume_error(shale_open(folder, config.config, false, &engine->db));
  if (!error) error = engine->waits.observe(engine->db);
  if (!error) error = begin_copy_of_database();
  if (!error) error = engine->catalog.open(engine->db);
  if (!error) error = begin_recovery();
  return error;
}

bool is_there(const std::string &folder) {
  MY_STAT found;
  return my_stat(folder.c_str(), &found, MYF(0)) != nullptr;
}

// Without SHALE the server would recover from its binary log and its log of DDL what it can, and
// forget the rest: transactions that it has acknowledged stay undecided for good then.
[[noreturn]] void end_the_start() {
  log_error("the server does not start without its tables, which its binary log and its log of DDL "
            "may still have something to say of. Mend the reason above, or give up what these say "
            "and start with --shale=OFF");
  _exit(1);
}

}  // namespace

bool open_engine(handlerton *hton) {
  auto started = std::make_unique<Started>(hton);
  Started *engine = started.get();
  set_engine(std::move(started));
  ignore_db_dirs_append(kFolder);
  const bool was_there = is_there(engine->folder);
  if (Error error = open_database(engine)) {
    log_error("the database in " + engine->folder + " was not opened: " + error.text());
    close_engine();
    if (!mysqld_server_started && was_there) end_the_start();
    return false;
  }
  engine->syncer.start();
  return true;
}

void close_engine() {
  if (!engine_is_started()) return;
  auto &started = static_cast<Started &>(engine());
  started.syncer.stop();
  started.in_doubt.forget();
  started.catalog.close();
  shale_db *db = started.db;
  started.db = nullptr;
  Error error = db == nullptr ? Error() : consume_error(shale_close(db));
  if (error) log_error("the database was not closed well: " + error.text());
  set_engine(nullptr);
}

}  // namespace shale_sql
