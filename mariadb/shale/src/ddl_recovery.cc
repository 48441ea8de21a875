// What the server asks after a crash about statements that change tables, and what is compared
// once it has finished or undone them.

#include "server.h"

#include "ddl_recovery.h"
#include "engine.h"
#include "errors.h"

#include <datadict.h>

#include <set>

namespace shale_sql {

namespace {

constexpr const char *kPartition = "#P#";

// The path of the .frm, without its ending: partitions have that of their table.
std::string frm_of(const std::string &path) {
  size_t name = path.rfind(FN_LIBCHAR);
  size_t part = path.find(kPartition, name == std::string::npos ? 0 : name);
  return path.substr(0, part);
}

bool has_frm(const std::string &path) {
  return access((frm_of(path) + reg_ext).c_str(), F_OK) == 0;
}

// Names that only the server gives, to what it makes on the way.
bool is_intermediate(const std::string &path) {
  size_t name = path.rfind(FN_LIBCHAR);
  return path.compare(name == std::string::npos ? 0 : name + 1, 4, "#sql") == 0;
}

// Whether the table at a path is of this version of its definition, so that ALTER TABLE came to
// its end in the engine. Partitions change together: one tells of all.
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  std::string wanted(reinterpret_cast<const char *>(version->str), version->length);
  TableDef def;
  int error = engine.catalog.read(path, &def);
  if (error == HA_ERR_NO_SUCH_TABLE) {
    bool found = false;
    error = engine.catalog.each([&](const std::string &other, const TableDef &part) {
      if (found || frm_of(other) != path || other == path) return;
      found = true;
      def = part;
    });
    if (error == 0 && !found) return 1;
  }
  return error == 0 && def.version == wanted ? 0 : 1;
}

// Tables of this engine whose .frm is there, in the folders of all schemas.
void each_frm(const std::function<void(const std::string &)> &visit) {
  MY_DIR *schemas = my_dir(".", MYF(MY_WANT_STAT));
  if (schemas == nullptr) return;
  for (size_t i = 0; i < schemas->number_of_files; i++) {
    const fileinfo &schema = schemas->dir_entry[i];
    if (!MY_S_ISDIR(schema.mystat->st_mode) || schema.name[0] == '.' || schema.name[0] == '#') {
      continue;
    }
    std::string folder = std::string("./") + schema.name + "/";
    MY_DIR *files = my_dir(folder.c_str(), MYF(0));
    if (files == nullptr) continue;
    for (size_t j = 0; j < files->number_of_files; j++) {
      std::string name = files->dir_entry[j].name;
      if (name.size() <= 4 || name.compare(name.size() - 4, 4, reg_ext) != 0) continue;
      char engine_name[NAME_CHAR_LEN + 1];
      LEX_CSTRING found = {engine_name, 0};
      std::string path = folder + name;
      if (dd_frm_type(nullptr, &path[0], &found, nullptr, nullptr) == TABLE_TYPE_VIEW) continue;
      if (found.length == 5 && memcmp(found.str, "SHALE", 5) == 0) {
        visit(path.substr(0, path.size() - 4));
      }
    }
    my_dirend(files);
  }
  my_dirend(schemas);
}

int recovery_done(handlerton *) {
  std::set<std::string> tables;
  std::vector<std::pair<std::string, TableDef>> leftovers;
  int error = engine.catalog.each([&](const std::string &path, const TableDef &def) {
    tables.insert(path);
    if (has_frm(path)) return;
    if (is_intermediate(path)) {
      leftovers.emplace_back(path, def);
    } else {
      log_error("table " + path + " has no .frm file: restore that file, or remove the table by "
                "DROP TABLE");
    }
  });
  if (error != 0) {
    log_error("the catalog cannot be read: " + last_text());
    return 0;
  }
  for (const auto &[path, def] : leftovers) {
    log_note("table " + path + " is left over from a statement that did not come to its end, and "
             "is dropped");
    if (drop_table(path, def) != 0) log_error("it was not dropped: " + last_text());
  }
  each_frm([&](const std::string &path) {
    if (tables.count(path) != 0) return;
    log_error("the catalog has no table " + path + ", of which there is a .frm file: restore the "
              "folder #shale it belongs to, or remove the table by DROP TABLE");
  });
  return 0;
}

}  // namespace

void fill_recovery(handlerton *hton) {
  hton->check_version = check_version;
  hton->signal_ddl_recovery_done = recovery_done;
}

}  // namespace shale_sql
