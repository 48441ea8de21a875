// What the server asks after a crash about statements that change tables, and what is compared
// once it has finished or undone them.

#include "ddl/ddl_recovery.h"

#include "server.h"
#include <datadict.h>
#include <table_cache.h>

#include "ddl/table_trees.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/table_files.h"
#include "tables/constraint_text.h"
#include "tables/links.h"

namespace shale_sql {

namespace {

constexpr const char *kEngine = "SHALE";
// That of every table with partitions, as the server has it.
constexpr const char *kPartitions = "partition";

DdlRecovery &state() { return engine().recovery; }

// Whether the table at a path is of this version of its definition, so that ALTER TABLE came to
// its end in the engine. Partitions change together: one tells of all.
int check_version(handlerton *, const char *path, const LEX_CUSTRING *version, ulonglong) {
  std::string wanted(reinterpret_cast<const char *>(version->str), version->length);
  TableDef def;
  Error error = engine().catalog.read(path, &def);
  if (error == HA_ERR_NO_SUCH_TABLE) {
    bool found = false;
    error = engine().catalog.each_partition(path, [&](const std::string &, const TableDef &part) {
      if (!found) def = part;
      found = true;
    });
    if (!error && !found) return 1;
  }
  return !error && def.version == wanted ? 0 : 1;
}

// The name of the engine in a .frm file; empty: it is a view's, or has none.
std::string engine_of(std::string frm) {
  char name[NAME_CHAR_LEN + 1] = {};
  LEX_CSTRING found = {name, 0};
  bool view = dd_frm_type(nullptr, &frm[0], &found, nullptr, nullptr) == TABLE_TYPE_VIEW;
  return view ? std::string() : std::string(found.str, found.length);
}

std::string engine_of_table(const std::string &path) {
  return engine_of(table_of(path) + reg_ext);
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
      std::string path = folder + name;
      if (engine_of(path) == kEngine) visit(path.substr(0, path.size() - 4));
    }
    my_dirend(files);
  }
  my_dirend(schemas);
}

// A statement that renames a table renames its partitions one by one, then their list, then the
// .frm. What undoes or finishes it reads the list: so partitions that went ahead of it come back.
Error put_back_renamed() {
  std::vector<std::pair<std::string, std::string>> renamed;
  Error error = engine().catalog.renamed(&renamed);
  for (size_t i = 0; !error && i < renamed.size(); i++) {
    const auto &[path, was] = renamed[i];
    if (has_frm(path) || !has_frm(was) || engine_of_table(was) != kPartitions) continue;
    // The list may have followed the partitions already, and without its .frm is not read there.
    bool ahead = is_listed(path) && !has_partition_list(was);
    if (ahead && (error = rename_partition_list(table_of(path), table_of(was)))) break;
    // A list that is at its path all the same is one that another statement has left.
    if (!is_listed(was)) continue;
    TableDef def;
    if (engine().catalog.read(path, &def) != 0 ||
        engine().catalog.read(was, &def) != HA_ERR_NO_SUCH_TABLE) {
      continue;
    }
    log_note("partition " + path + " goes back to " + was + ": the statement that renamed its "
             "table did not come to its end");
    error = engine().catalog.rename(path, was);
  }
  return error;
}

// Of a partition without a .frm: whether the server has just decided that its table is not to be.
// Of CREATE TABLE it undoes the .frm only. DROP TABLE removes the list, the partitions one by one,
// then the .frm: the server then finishes the .frm only, as there is no list to say what the
// partitions are.
bool was_undone(const std::string &path) {
  if (!is_partition(path)) return false;
  auto files = state().files_at_start.find(table_of(path));
  return files != state().files_at_start.end() && files->second.frm &&
         files->second.list == has_partition_list(path);
}

// Rows without a .frm that no statement under way has left: whatever their name, they stay.
bool is_kept(const std::string &path) {
  return state().not_renamed.count(table_of(path)) != 0 || is_lost(path);
}

Error drop_leftovers() {
  std::vector<std::pair<std::string, TableDef>> leftovers;
  Error error = engine().catalog.each([&](const std::string &path, const TableDef &def) {
    if (has_frm(path) || is_kept(path)) return;
    if (is_intermediate(path) || was_undone(path)) leftovers.emplace_back(path, def);
  });
  std::set<std::string> lists;
  for (const auto &[path, def] : leftovers) {
    log_note("table " + path + " is left over from a statement that did not come to its end, and "
             "is dropped");
    if (Error error = drop_table(path, def)) {
      log_error("it was not dropped: " + error.text());
    } else if (is_partition(path)) {
      lists.insert(table_of(path));
    }
  }
  for (const std::string &table : lists) delete_partition_list(table);
  return error;
}

// A table that had lost its .frm has it back, and not that of another engine's table.
bool is_found(const std::string &path) {
  if (!has_frm(path) || !is_lost(path)) return has_frm(path);
  std::string name = engine_of_table(path);
  return name == kEngine || name == kPartitions;
}

// Tells of tables and .frm files without each other, and keeps in mind which have lost theirs.
Error compare_with_files() {
  std::set<std::string> tables, lost;
  Error error = engine().catalog.each([&](const std::string &path, const TableDef &) {
    tables.insert(path);
    if (is_found(path) || (is_intermediate(path) && !is_kept(path))) return;
    const std::string table = table_of(path);
    if (lost.insert(table).second) log_error("table " + table + " has no .frm file: " + kWayOut);
  });
  if (error) return error;
  each_frm([&](const std::string &path) {
    if (tables.count(path) != 0) return;
    log_error("the catalog has no table " + path + ", of which there is a .frm file: restore the "
              "folder #shale it belongs to, or remove the table by DROP TABLE");
  });
  std::lock_guard<std::mutex> one_at_a_time(state().lost_lock);
  state().lost_tables = std::move(lost);
  return engine().catalog.write_lost(state().lost_tables);
}

int recovery_done(handlerton *) {
  Error error = drop_leftovers();
  if (!error) error = compare_with_files();
  if (!error) error = engine().catalog.forget_renamed();
  if (error) log_error("the catalog cannot be read or changed: " + error.text());
  state().recovering = false;
  state().files_at_start.clear();
  state().not_renamed.clear();
  return 0;
}

// The foreign key of a table outside of a folder that has this one for its parent.
ForeignKeys::Shared child_outside(const std::string &path, const std::string &folder) {
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_parent(path)) {
    if (key->child.compare(0, folder.size(), folder) != 0) return key;
  }
  return nullptr;
}

// Nobody uses the table any more, and the server forgets what it has open of it: its .frm may have
// gone while the server ran. Until the statement ends. False if that cannot be waited for.
bool lock_lost(THD *thd, const std::string &table) {
  std::string database, name;
  names_of(table, &database, &name);
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::TABLE, database.c_str(), name.c_str(), MDL_EXCLUSIVE,
                   MDL_TRANSACTION);
  // The statement has done its work: it is the log that tells of what stays.
  Dummy_error_handler silent;
  thd->push_internal_handler(&silent);
  const bool failed = thd->mdl_context.acquire_lock(&request, thd->variables.lock_wait_timeout);
  thd->pop_internal_handler();
  if (!failed) tdc_remove_table(thd, database.c_str(), name.c_str());
  return !failed;
}

}  // namespace

bool is_recovering() { return state().recovering; }

void note_not_renamed(const std::string &path) { state().not_renamed.insert(table_of(path)); }

bool is_lost(const std::string &path) {
  std::lock_guard<std::mutex> one_at_a_time(state().lost_lock);
  return !state().lost_tables.empty() && state().lost_tables.count(table_of(path)) != 0;
}

Error note_lost(const std::string &path) {
  std::lock_guard<std::mutex> one_at_a_time(state().lost_lock);
  std::set<std::string> &lost = state().lost_tables;
  return lost.insert(table_of(path)).second ? engine().catalog.write_lost(lost) : 0;
}

Error note_not_lost(const std::string &path) {
  std::lock_guard<std::mutex> one_at_a_time(state().lost_lock);
  std::set<std::string> &lost = state().lost_tables;
  return lost.erase(table_of(path)) == 0 ? 0 : engine().catalog.write_lost(lost);
}

void drop_lost_tables(THD *thd, std::string folder) {
  if (folder.empty() || folder.back() != FN_LIBCHAR) folder.push_back(FN_LIBCHAR);
  if (is_recovering()) thd = nullptr;
  const bool checks = thd == nullptr || checks_foreign_keys(thd);
  std::vector<std::pair<std::string, TableDef>> left;
  Error error = engine().catalog.each_in(folder, [&](const std::string &path, const TableDef &def) {
    if (!has_frm(path)) left.emplace_back(path, def);
  });
  if (error) log_error("the catalog cannot be read: " + error.text());
  std::map<std::string, bool> is_ours;
  for (const auto &[path, def] : left) {
    // The server has locked the tables that it found. While it starts nobody else is there.
    const auto [locked, is_new] = is_ours.emplace(table_of(path), true);
    if (is_new && thd != nullptr) locked->second = lock_lost(thd, locked->first);
    if (!locked->second) {
      log_error("table " + path + " has no .frm file, and stays though its database goes: somebody "
                "uses it. Make the database again, and drop the table");
      continue;
    }
    if (const ForeignKeys::Shared key = checks ? child_outside(path, folder) : nullptr) {
      log_error("table " + path + " has no .frm file, and stays though its database goes: foreign "
                "key " + key->name + " of table " + key->child + " is to it. Drop that one, then "
                "make the database again, and drop the table");
      continue;
    }
    log_note("table " + path + " has no .frm file, and is dropped with its database");
    if ((error = drop_table(path, def)) || (error = note_not_lost(path))) {
      log_error("it was not dropped: " + error.text());
    } else if (is_partition(path)) {
      delete_partition_list(path);
    }
  }
}

Error begin_recovery() {
  state().recovering = true;
  {
    std::lock_guard<std::mutex> one_at_a_time(state().lost_lock);
    state().lost_tables.clear();
    if (Error error = engine().catalog.lost(&state().lost_tables)) return error;
  }
  // Without the engine the server would forget what it has to finish: it goes on.
  if (Error error = put_back_renamed()) {
    log_error("a partition was not renamed back: " + error.text());
  }
  return engine().catalog.each([](const std::string &path, const TableDef &) {
    if (!is_partition(path)) return;
    auto [files, first] = state().files_at_start.try_emplace(table_of(path));
    if (first) files->second = {has_frm(path), has_partition_list(path)};
  });
}

void fill_recovery(handlerton *hton) {
  hton->check_version = check_version;
  hton->signal_ddl_recovery_done = recovery_done;
}

}  // namespace shale_sql
