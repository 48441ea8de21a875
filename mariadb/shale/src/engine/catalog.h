// What the plugin knows of its tables, kept in a tree of the engine's own beside theirs.
//
//   T <path of the table>   its definition (TableDef)
//   A <table id>            the next automatic number
//   H <table id>            up to where hidden keys have been given out
//   S <table id>            what ANALYZE TABLE found
//   F <path of a table> 0 <name>  a foreign key of it
//   K <path of an intermediate table>  the path of the table that it is, or will be
//   R <path of a partition> the path it had before its table was renamed, until the next start
//   L <path of a table>     it had no .frm file when the server began
//   N                       the next table id
//
// A tree that no definition names is left over from a crash and is dropped at the next start: so
// trees are made before the definition that names them is written, and dropped after it has gone.
#pragma once

#include "codec/table_bytes.h"
#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/foreign_keys.h"
#include "engine/handles.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shale_sql {

class Catalog {
 public:
  Catalog();
  // Opens it, made if there is none, and drops trees that belong to no table. 0, or an error's
  // number.
  Error open(shale_db *db);
  // That of a database that is only read: definitions and numbers, without foreign keys.
  Error look(shale_db *db);
  void close();

  // The definition of the table at a path; HA_ERR_NO_SUCH_TABLE if there is none.
  Error read(const std::string &path, TableDef *def) const;
  Error write(const std::string &path, const TableDef &def);
  // That of a new table with its foreign keys. `known_as`: of a copy, the path of the table that is
  // altered; else the same path. HA_ERR_FOUND_DUPP_KEY: one has a name that another has in the
  // database.
  Error write_new(const std::string &path, const std::string &known_as, const TableDef &def,
                  const ForeignKeys::List &keys);
  // The path by which others know a table: another one only of intermediate tables.
  std::string known_as(const std::string &path) const;
  // As write, of what can be written again: without a sync.
  Error complete(const std::string &path, const TableDef &def);
  // The table's definition, its foreign keys and all its numbers, in one step.
  Error erase(const std::string &path, const TableDef &def);
  // Its foreign keys, and those of its children, follow it in the same step (ForeignKeys::renamed).
  Error rename(const std::string &from, const std::string &to);
  // Definitions get the place of others, which go, all in one step: what TRUNCATE and
  // IMPORT need.
  struct Replaced {
    std::string path;
    TableDef was, is;
  };
  Error replace(const std::vector<Replaced> &tables);
  struct Redefined {
    std::string path;
    const TableDef *def;
    uint64_t number;  // its next automatic one, if not 0
  };
  // What becomes of foreign keys, by the map as it is then; or an error.
  using ChangeKeys = std::function<Error(ForeignKeys::Change *)>;
  // In one step, as partitions are altered together. Nobody else changes foreign keys from `change`
  // on until they are written. HA_ERR_FOUND_DUPP_KEY as of write_new.
  Error write_all(const std::vector<Redefined> &tables, const ChangeKeys &change);
  Error new_table_id(uint64_t *id);
  // The partitions whose table was renamed since the last start, with the paths they had.
  Error renamed(std::vector<std::pair<std::string, std::string>> *found) const;
  Error forget_renamed();
  // The tables without a .frm file at the last start.
  Error lost(std::set<std::string> *tables) const;
  Error write_lost(const std::set<std::string> &tables);
  using VisitTable = std::function<void(const std::string &, const TableDef &)>;
  // The partitions of a table, by path.
  Error each_partition(const std::string &table, const VisitTable &visit) const;
  // The tables whose path begins with that of a folder.
  Error each_in(const std::string &folder, const VisitTable &visit) const {
    return each_table(folder, visit);
  }
  // All tables, by path.
  Error each(const VisitTable &visit) const;

  // Numbers and texts of a table. Without a sync: what is lost with the machine was not committed
  // either.
  Error read_number(char kind, uint64_t table_id, uint64_t *number) const;
  Error write_number(char kind, uint64_t table_id, uint64_t number);
  Error read_text(char kind, uint64_t table_id, std::string *text) const;
  Error write_text(char kind, uint64_t table_id, const std::string &text);

  // As the entries F have them. Only this class changes them.
  const ForeignKeys &foreign_keys() const { return foreign_keys_; }
  // Grows when a definition is made, changes or goes.
  uint64_t definitions() const { return definitions_.load(std::memory_order_acquire); }

 private:
  Error put(const std::string &key, const std::string &value, bool sync);
  // Temporary tables of before a crash.
  Error erase_temporary();
  Error drop_orphans();
  // Reads all entries F, and erases those whose table is not there.
  Error read_foreign_keys();
  using Visit = std::function<Error(const std::string &, std::string_view)>;
  // All entries of a kind whose path begins with these bytes, until one visit fails.
  Error each_of(char kind, const std::string &beginning, const Visit &visit) const;
  Error each_table(const std::string &beginning, const VisitTable &visit) const;
  // The paths of entries that have nothing else.
  Error marks(char kind, std::set<std::string> *paths) const;
  // All entries of a kind go, and others come, in one step.
  Error replace_marks(char kind, const std::set<std::string> &paths);

  shale_db *db_ = nullptr;
  TreeHandle tree_;
  std::mutex ids_;
  ForeignKeys foreign_keys_;
  std::atomic<uint64_t> definitions_{0};
  std::mutex foreign_keys_lock_;  // from looking at them to having written what changes
};

std::string tree_name(uint64_t table_id, uint32_t index_id);

}  // namespace shale_sql
