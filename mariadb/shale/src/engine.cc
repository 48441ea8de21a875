#include "server.h"

#include "engine.h"
#include "errors.h"
#include "settings.h"
#include "waits.h"

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

shale_error *tree_config(const std::string &codec, shale_tree_config **config) {
  shale_error *error = shale_tree_config_new(config);
  if (error != nullptr || codec.empty()) return error;
  // One codec for a table: the small levels, which are rewritten soon, stay as they are.
  for (const char *name : {"codecs.middle", "codecs.last"}) {
    if (error == nullptr) error = shale_tree_config_set(*config, name, codec.c_str());
  }
  return error;
}

struct TreeConfig {
  shale_tree_config *config = nullptr;
  shale_error *error;
  explicit TreeConfig(const std::string &codec) : error(tree_config(codec, &config)) {}
  ~TreeConfig() { shale_tree_config_free(config); }
};

}  // namespace

int open_engine(handlerton *hton) {
  engine.hton = hton;
  engine.folder = std::string(mysql_real_data_home) + kFolder;
  Config config;
  config.set("memory_bytes", std::to_string(settings::memory));
  if (settings::durability == settings::kPeriodic) config.set("sync", "every_millis:1000");
  if (config.error != nullptr) return number_of(config.error);
  if (int error = number_of(shale_open(engine.folder.c_str(), config.config, &engine.db))) {
    return error;
  }
  int error = tell_of_waits(engine.db);
  if (error == 0) error = engine.catalog.open(engine.db);
  if (error != 0) close_engine();
  return error;
}

int close_engine() {
  engine.catalog.close();
  shale_db *db = engine.db;
  engine.db = nullptr;
  return db == nullptr ? 0 : number_of(shale_close(db));
}

int create_tree(const std::string &name, const std::string &codec, TreeHandle *tree) {
  TreeConfig config(codec.empty() ? settings::codec() : codec);
  if (config.error != nullptr) return number_of(config.error);
  shale_tree *made = nullptr;
  int error = number_of(shale_tree_create(engine.db, name.c_str(), config.config, &made));
  tree->reset(made);
  return error;
}

bool check_codec(const std::string &codec, std::string *why) {
  TreeConfig config(codec);
  ErrorHandle error(config.error);
  if (error) *why = shale_error_text(error.get());
  return !error;
}

}  // namespace shale_sql
