// Opening and closing the database, and making and dropping its trees.

#include "engine.h"

#include "server.h"

#include "checkpoint.h"
#include "ddl_recovery.h"
#include "errors.h"
#include "late_decisions.h"
#include "settings.h"
#include "waits.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

// Of the server, in none of its headers: a folder in the data folder that is no schema.
void ignore_db_dirs_append(const char *folder);

namespace shale_sql {

Engine engine;

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

// Statements look up rows one by one, and each look-up that misses the cache decompresses a block:
// a quarter of the engine's default, at about the same size (docs/decisions/0008).
constexpr const char *kBlockBytes = "4096";

shale_error *tree_config(const std::string &codec, shale_config **config) {
  shale_error *error = shale_config_new(config);
  if (error == nullptr) error = shale_config_set(*config, "tree.block_bytes", kBlockBytes);
  if (error != nullptr || codec.empty()) return error;
  // One codec for a table: the small levels, which are rewritten soon, stay as they are.
  for (const char *name : {"tree.codecs.middle", "tree.codecs.last"}) {
    if (error == nullptr) error = shale_config_set(*config, name, codec.c_str());
  }
  return error;
}

struct TreeConfig {
  shale_config *config = nullptr;
  shale_error *error;
  explicit TreeConfig(const std::string &codec) : error(tree_config(codec, &config)) {}
  ~TreeConfig() { shale_config_free(config); }
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

namespace {

std::vector<const char *> texts_of(const std::vector<std::string> &names) {
  std::vector<const char *> texts;
  for (const std::string &name : names) texts.push_back(name.c_str());
  return texts;
}

}  // namespace

int create_trees(const std::vector<std::string> &names, const std::string &codec, bool dictionary,
                 std::vector<TreeHandle> *trees) {
  TreeConfig config(codec.empty() ? settings::codec() : codec);
  if (config.error == nullptr && dictionary) {
    config.error = shale_config_set(config.config, "tree.dictionary", "true");
  }
  if (config.error != nullptr) return number_of(config.error);
  std::vector<shale_tree *> made(names.size(), nullptr);
  int error = number_of(shale_trees_change(engine.db, texts_of(names).data(), names.size(),
                                           config.config, nullptr, 0, made.data()));
  trees->clear();
  for (shale_tree *tree : made) trees->emplace_back(tree);
  return error;
}

void drop_trees(const std::vector<std::string> &names) {
  ErrorHandle error(shale_trees_change(engine.db, nullptr, 0, nullptr, texts_of(names).data(),
                                       names.size(), nullptr));
  if (!error) return;
  bool is_gone = shale_error_kind_of(error.get()) == SHALE_NO_SUCH_TREE;
  if (is_gone && names.size() == 1) return;
  for (const std::string &name : names) {
    if (is_gone) {
      // Where one is gone the others go one by one.
      drop_trees({name});
    } else {
      log_error("tree " + name + " of what was dropped stays until the next start: " +
                shale_error_text(error.get()));
    }
  }
}

bool check_codec(const std::string &codec, std::string *why) {
  TreeConfig config(codec);
  ErrorHandle error(config.error);
  if (error) *why = shale_error_text(error.get());
  return !error;
}

}  // namespace shale_sql
