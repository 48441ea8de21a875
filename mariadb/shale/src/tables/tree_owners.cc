// Reads all tables of the catalog; their names are those of files, which are decoded.

#include "tables/tree_owners.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"

namespace shale_sql {

namespace {

// A name as it was given. A partition's file has several, "table#P#partition#SP#part", which the
// server would take for one of before 5.1.
std::string from_file_name(const std::string &file) {
  std::string given;
  for (size_t begin = 0; begin <= file.size();) {
    size_t end = std::min(file.find('#', begin), file.size());
    char name[NAME_LEN * 3 + 1];
    std::string part = file.substr(begin, end - begin);
    uint length = filename_to_tablename(part.c_str(), name, sizeof(name), true);
    given.append(begin == 0 ? "" : "#").append(name, length);
    begin = end + 1;
  }
  return given;
}

// "./schema/table", as the catalog has it, or a temporary table's path.
void split_path(const std::string &path, TreeOwner *owner) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos || path.compare(0, 2, "./") != 0) {
    owner->table = path;
    return;
  }
  owner->schema = from_file_name(path.substr(2, slash - 2));
  owner->table = from_file_name(path.substr(slash + 1));
}

}  // namespace

std::map<std::string, TreeOwner> tree_owners() {
  std::map<std::string, TreeOwner> owners;
  Error error = engine().catalog.each([&](const std::string &path, const TableDef &def) {
    for (const IndexDef &index : def.indexes) {
      TreeOwner owner;
      split_path(path, &owner);
      owner.index = index.name;
      owners[tree_name(def.table_id, index.id)] = std::move(owner);
    }
  });
  if (error) log_error("the catalog cannot be read: " + error.text());
  return owners;
}

std::string name_of(const std::map<std::string, TreeOwner> &owners, const std::string &tree) {
  auto found = owners.find(tree);
  if (found == owners.end()) return "tree " + tree;
  const TreeOwner &owner = found->second;
  std::string index = owner.index.empty() ? "(hidden primary key)" : owner.index;
  return owner.schema + "." + owner.table + "." + index;
}

}  // namespace shale_sql
