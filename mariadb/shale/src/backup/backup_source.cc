// A table out of a backup, without a second server.

#include "backup/backup_source.h"

#include "server.h"

#include "codec/index_defs.h"
#include "codec/schema_words.h"
#include "engine/table_files.h"
#include "engine/trees.h"

#include <algorithm>

namespace shale_sql {

namespace {

constexpr std::string_view kDefinitions = "/definitions/";
constexpr std::string_view kFrm = ".frm";
// What the backup's blocks may take while they are read.
constexpr const char *kMemory = "67108864";

bool is_there(const std::string &file) { return my_access(file.c_str(), F_OK) == 0; }

// Keeps the first error that the server tells.
class FirstError : public Internal_error_handler {
 public:
  bool handle_condition(THD *, uint, const char *, Sql_condition::enum_warning_level *,
                        const char *text, Sql_condition **) override {
    if (text_.empty()) text_ = text;
    return true;
  }
  const std::string &text() const { return text_; }

 private:
  std::string text_;
};

// Where in a path a backup's definitions begin; npos: the path is not of one of them.
size_t definitions_in(const std::string &path) {
  size_t at = is_there(path + "/shale") ? std::string::npos : path.rfind(kDefinitions);
  while (at != std::string::npos && !is_there(path.substr(0, at) + "/shale")) {
    at = at == 0 ? std::string::npos : path.rfind(kDefinitions, at - 1);
  }
  return at;
}

}  // namespace

BackupSource::BackupSource(THD *thd, const std::string &from, const std::string &path)
    : thd_(thd), folder_(from) {
  const size_t definitions = definitions_in(folder_);
  if (definitions != std::string::npos) {
    table_ = folder_.substr(definitions + kDefinitions.size());
    folder_.resize(definitions);
    const bool named = table_.size() > kFrm.size() &&
                       table_.compare(table_.size() - kFrm.size(), kFrm.size(), kFrm) == 0;
    if (named) table_.resize(table_.size() - kFrm.size());
  } else {
    table_ = path.substr(path.find(FN_LIBCHAR) + 1);
  }
}

BackupSource::~BackupSource() {
  catalog_.close();
  if (db_ != nullptr) shale_error_free(shale_close(db_));
}

Error BackupSource::failed(const std::string &what) const {
  return Error(kErrEngine, "the backup " + folder_ + " " + what);
}

Error BackupSource::open() {
  const std::string database = folder_ + "/shale";
  if (!is_there(database) || !is_there(folder_ + "/definitions")) {
    return Error(HA_ERR_TABLESPACE_MISSING, "shale_import_from names " + folder_ +
                                                ", which has no folders `shale` and `definitions` "
                                                "as mariadb/backup makes them");
  }
  shale_config *config = nullptr;
  shale_error *error = shale_config_new(&config);
  if (error == nullptr) error = shale_config_set(config, "memory_bytes", kMemory);
  if (error == nullptr) error = shale_open(database.c_str(), config, true, &db_);
  shale_config_free(config);
  if (Error opened = consume_error(error)) return failed("cannot be read: " + opened.text());
  if (Error looked = catalog_.look(db_)) return failed("has no catalog: " + looked.text());
  return 0;
}

// As export_rows has it of an open table. The catalog's definition gets what one of an earlier
// format lacks, as when a table is opened.
Error BackupSource::read_schema(std::string *words) {
  const std::string name = table_of(table_);
  const std::string path = folder_ + std::string(kDefinitions) + name;
  if (!has_frm(path)) return failed("lacks the file " + path + ".frm");
  // The schema's name and the table's, each with a byte 0 behind it.
  std::string key = name + '\0';
  std::replace(key.begin(), key.end(), FN_LIBCHAR, '\0');
  TABLE_SHARE share;
  TABLE table;
  init_tmp_table_share(thd_, &share, key.data(), static_cast<uint>(key.size()),
                       path.c_str() + path.rfind(FN_LIBCHAR) + 1, path.c_str());
  const LEX_CSTRING alias = {"backup", 6};
  FirstError why;
  thd_->push_internal_handler(&why);
  bool good = open_table_def(thd_, &share, GTS_TABLE) == OPEN_FRM_OK;
  // Its handler opens nothing.
  good = good && open_table_from_share(thd_, &share, &alias, 0, EXTRA_RECORD, 0, &table, false) ==
                     OPEN_FRM_OK;
  thd_->pop_internal_handler();
  if (good) {
    *words = schema_words(&table);
    if (has_indexes_of(def_, &table)) describe_indexes(&table, &def_);
    closefrm(&table);
  }
  free_table_share(&share);
  if (good) return 0;
  return failed("has a definition that cannot be read, " + path + ".frm: " + why.text());
}

Error BackupSource::begin(TableCopy *table) {
  if (Error error = open()) return error;
  Error error = catalog_.read("./" + table_, &def_);
  if (error == HA_ERR_NO_SUCH_TABLE) {
    return Error(HA_ERR_TABLESPACE_MISSING, "the backup " + folder_ + " has no table " + table_);
  }
  if (error) return failed("does not tell of " + table_ + ": " + error.text());
  if (def_.discarded) return failed("has no rows of " + table_ + ": it was discarded");
  error = catalog_.read_number('A', def_.table_id, &table->next_number);
  if (!error) error = catalog_.read_number('H', def_.table_id, &table->next_hidden);
  if (error) return failed("does not tell of " + table_ + ": " + error.text());
  error = read_schema(&table->schema);
  table->def = def_;
  return error;
}

Error BackupSource::fill(THD *thd, const std::vector<TreeHandle> &trees) {
  TreeFiller filler(trees);
  std::string wrong;
  bool is_told = false;  // an error of this server's database, or what is wrong
  const auto take = [&](const std::string &block) -> Error {
    Error error = filler.add(block, &wrong);
    is_told = error || !wrong.empty();
    return error || wrong.empty() ? std::move(error) : failed("is damaged: it has " + wrong);
  };
  for (size_t place = 0; place < trees.size(); place++) {
    const std::string name = tree_name(def_.table_id, def_.indexes[place].id);
    TreeHandle tree;
    Error error = open_tree(db_, name, &tree);
    uint64_t entries = 0;
    if (!error) error = read_tree(thd, nullptr, tree.get(), place, take, &entries);
    if (is_told || error == HA_ERR_ABORTED_BY_USER) return error;
    if (error) return failed("cannot be read: " + error.text());
  }
  return filler.finish();
}

}  // namespace shale_sql
