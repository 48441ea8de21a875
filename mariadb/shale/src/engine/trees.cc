// Settings of new trees, and changes of which trees there are.

#include "engine/trees.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"

namespace shale_sql {

namespace {

// Statements look up rows one by one, and each look-up that misses the cache decompresses a block:
// a quarter of the engine's default, at about the same size (docs/decisions/0008).
constexpr const char *kBlockBytes = "4096";

shale_error *tree_config(const std::string &codec, shale_config **config) {
  shale_error *error = shale_config_new(config);
  if (error == nullptr) error = shale_config_set(*config, "tree.block_bytes", kBlockBytes);
  if (error != nullptr || codec.empty()) return error;
  // One codec for a table: the upper levels, which are rewritten soon, stay as they are.
  for (const char *name : {"tree.codecs.middle", "tree.codecs.bottommost"}) {
    if (error == nullptr) error = shale_config_set(*config, name, codec.c_str());
  }
  return error;
}

struct TreeConfig {
  shale_config *config = nullptr;
  shale_error *error;
  explicit TreeConfig(const std::string &codec) : error(tree_config(codec, &config)) {}
  TreeConfig(const std::string &codec, bool dictionary)
      : TreeConfig(codec.empty() ? settings::codec() : codec) {
    if (error != nullptr) return;
    error = shale_config_set(config, "tree.dictionary", dictionary ? "true" : "false");
  }
  ~TreeConfig() { shale_config_free(config); }
};

std::vector<const char *> texts_of(const std::vector<std::string> &names) {
  std::vector<const char *> texts;
  for (const std::string &name : names) texts.push_back(name.c_str());
  return texts;
}

}  // namespace

Error open_tree(const shale_db *db, const std::string &name, TreeHandle *tree) {
  shale_tree *opened = nullptr;
  Error error = consume_error(
      shale_tree_open(db, name.c_str(), SHALE_TREE_THERE, nullptr, &opened));
  tree->reset(opened);
  return error;
}

Error create_trees(const std::vector<std::string> &names, const std::string &codec, bool dictionary,
                 std::vector<TreeHandle> *trees) {
  TreeConfig config(codec, dictionary);
  if (config.error != nullptr) return consume_error(config.error);
  std::vector<shale_tree *> made(names.size(), nullptr);
  Error error = consume_error(shale_trees_change(engine().db, texts_of(names).data(), names.size(),
                                           config.config, nullptr, 0, made.data()));
  trees->clear();
  for (shale_tree *tree : made) trees->emplace_back(tree);
  return error;
}

Error begin_build(const shale_tree *source, const std::string &name, const std::string &codec,
                  bool dictionary, unsigned long wait_millis, BuildHandle *build,
                  TreeHandle *tree) {
  TreeConfig config(codec, dictionary);
  if (config.error != nullptr) return consume_error(config.error);
  shale_build *begun = nullptr;
  shale_tree *made = nullptr;
  Error error = consume_error(
      shale_build_new(source, name.c_str(), config.config, SHALE_NOT_UNIQUE, 0, wait_millis,
                      &begun, &made));
  build->reset(begun);
  tree->reset(made);
  return error;
}

void drop_trees(const std::vector<std::string> &names) {
  ErrorHandle error(shale_trees_change(engine().db, nullptr, 0, nullptr, texts_of(names).data(),
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
