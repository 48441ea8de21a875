// The order in which all is opened and closed, and the thread that looks after the database.

#include "plugin/start.h"

#include "server.h"

#include "backup/checkpoint.h"
#include "ddl/ddl_recovery.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "tables/in_words.h"
#include "txn/late_decisions.h"
#include "txn/waits.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

// Of the server, in none of its headers: a folder in the data folder that is no schema.
void ignore_db_dirs_append(const char *folder);

namespace shale_sql {

namespace {

// Beginning with a sign that no schema's folder has, as those of other engines do.
constexpr const char *kFolder = "#shale";

struct Config {
  shale_config *config = nullptr;
  shale_error *error = shale_config_new(&config);
  ~Config() { shale_config_free(config); }
  void set(const char *name, const std::string &value) {
    if (error == nullptr) error = shale_config_set(config, name, value.c_str());
  }
};

// Once a second: with shale_durability=periodic, makes durable what was committed, and tries late
// commits again. A thread of the plugin's own, since the setting may change at any time.
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
    bool failing = false;
    while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; })) {
      late_decisions::try_again();
      if (settings::durability != settings::kPeriodic) continue;
      lock.unlock();
      bool fails = number_of(shale_sync(engine.db)) != 0;
      if (fails && !failing) log_error("commits cannot be made durable: " + last_text());
      failing = fails;
      lock.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

Syncer syncer;

}  // namespace

int open_engine(handlerton *hton) {
  engine.hton = hton;
  tell_deadlocks_by(in_words);
  engine.folder = std::string(mysql_real_data_home) + kFolder;
  ignore_db_dirs_append(kFolder);
  Config config;
  config.set("memory_bytes", std::to_string(settings::memory));
  if (config.error != nullptr) return number_of(config.error);
  if (int error = number_of(shale_open(engine.folder.c_str(), config.config, false, &engine.db))) {
    return error;
  }
  int error = tell_of_waits(engine.db);
  if (error == 0) error = begin_copy_of_database();
  if (error == 0) error = engine.catalog.open(engine.db);
  if (error == 0) error = begin_recovery();
  if (error != 0) {
    close_engine();
    return error;
  }
  syncer.start();
  return 0;
}

int close_engine() {
  syncer.stop();
  late_decisions::forget();
  engine.catalog.close();
  shale_db *db = engine.db;
  engine.db = nullptr;
  return db == nullptr ? 0 : number_of(shale_close(db));
}

}  // namespace shale_sql
