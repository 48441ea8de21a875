// What the server's names of files say, and its list of partitions.

#include "engine/table_files.h"

#include "server.h"

#include <fstream>
#include <iterator>

namespace shale_sql {

namespace {

constexpr const char *kPartition = "#P#";
constexpr const char *kSubpartition = "#SP#";
constexpr const char *kIntermediate = "#sql";
constexpr const char *kListEnding = ".par";
constexpr const char *kMovedEnding = ".shale";

size_t place_of_name(const std::string &path) {
  size_t separator = path.rfind(FN_LIBCHAR);
  return separator == std::string::npos ? 0 : separator + 1;
}

// Where the name of the partition begins in a path, with what separates it; npos: it has none.
size_t place_of_partition(const std::string &path) {
  return path.find(kPartition, place_of_name(path));
}

std::string list_of(const std::string &path) { return table_of(path) + kListEnding; }

}  // namespace

std::string moved_file(const std::string &path) { return path + kMovedEnding; }

void delete_moved_files(const std::string &folder) {
  MY_DIR *files = my_dir(folder.c_str(), MYF(0));
  if (files == nullptr) return;
  const size_t ending = strlen(kMovedEnding);
  for (size_t i = 0; i < files->number_of_files; i++) {
    const std::string name = files->dir_entry[i].name;
    if (name.size() <= ending || name.substr(name.size() - ending) != kMovedEnding) continue;
    my_delete((folder + FN_LIBCHAR + name).c_str(), MYF(0));
  }
  my_dirend(files);
}

bool is_partition(const std::string &path) { return place_of_partition(path) != std::string::npos; }

std::string partition_name(const std::string &path) {
  size_t place = place_of_partition(path);
  if (place == std::string::npos) return {};
  place += strlen(kPartition);
  const std::string file = path.substr(place, path.find(kSubpartition, place) - place);
  char name[NAME_LEN + 1];
  return {name, filename_to_tablename(file.c_str(), name, sizeof(name))};
}

std::string table_of(const std::string &path) { return path.substr(0, place_of_partition(path)); }

bool is_same_partition(const std::string &path, const std::string &other) {
  return is_partition(path) && is_partition(other) &&
         path.substr(place_of_partition(path)) == other.substr(place_of_partition(other));
}

bool is_intermediate(const std::string &path) {
  return path.compare(place_of_name(path), strlen(kIntermediate), kIntermediate) == 0;
}

bool has_frm(const std::string &path) {
  return access((table_of(path) + reg_ext).c_str(), F_OK) == 0;
}

bool has_partition_list(const std::string &path) {
  return access(list_of(path).c_str(), F_OK) == 0;
}

// The names stand in the list as in paths, each with a zero behind it and before it.
bool is_listed(const std::string &partition) {
  if (!is_partition(partition)) return false;
  std::ifstream file(list_of(partition), std::ios::binary);
  std::string list{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string name(1, '\0');
  name += partition.substr(place_of_partition(partition) + strlen(kPartition));
  name.push_back('\0');
  return list.find(name) != std::string::npos;
}

int rename_partition_list(const std::string &from, const std::string &to) {
  if (!has_partition_list(from)) return 0;
  return my_rename(list_of(from).c_str(), list_of(to).c_str(), MYF(0)) == 0 ? 0 : my_errno;
}

void delete_partition_list(const std::string &path) { my_delete(list_of(path).c_str(), MYF(0)); }

}  // namespace shale_sql
