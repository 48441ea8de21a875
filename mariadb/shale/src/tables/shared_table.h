// What all handlers of one table share: its definition, its trees, its counters.
#pragma once

#include "codec/key_words.h"
#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/handles.h"
#include "tables/building.h"
#include "tables/links.h"
#include "tables/query_cache.h"
#include "tables/table_counts.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace shale_sql {

// What the optimizer is told of an index: rows per distinct value of the first 1, 2, ... parts.
// One without a name has the number of rows that there were then.
struct IndexStatistics {
  std::string name;
  std::vector<double> rows_per_key;
};

// Whether the server's definition of the table at a path is the catalog's: values and entries are
// found by their places, and by another definition they would be other columns'.
Error compare_definitions(const std::string &path, TABLE *table, const TableDef &def);

class SharedTable {
 public:
  SharedTable(std::string path, std::shared_ptr<const TableDef> def);
  SharedTable(const SharedTable &) = delete;
  SharedTable &operator=(const SharedTable &) = delete;

  // That of the table at a path, opened if it is not. The first who opens a table whose definition
  // does not have the parts of its indexes yet writes them.
  static Error open(const std::string &path, TABLE *opened_by,
                    std::shared_ptr<SharedTable> *table);
  // Lets go of it: who opens the table next reads the catalog. To be called when its definition
  // changes. The automatic number goes to the catalog, if it is still that of the table.
  static void forget(const std::string &path, bool keep_number);
  // Lets go of one reference; with the last one the automatic number goes to the catalog.
  static void close(std::shared_ptr<SharedTable> *table);
  bool is_forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

  // A tree epoch begins whenever the rows of a table are in new trees, of which snapshots of
  // earlier epochs show nothing.
  static uint64_t tree_epoch();
  static uint64_t next_tree_epoch();
  // The trees of a table are new, and of an epoch that begins with that.
  static void note_new_trees(const std::string &path);
  // The same of trees that show what snapshots show which are taken from `epoch` on.
  static void note_new_trees(const std::string &path, uint64_t epoch);
  static void note_renamed(const std::string &from, const std::string &to);
  static void note_gone(const std::string &path);
  // The epoch of this table's trees; 0: they are older than the server's start.
  uint64_t trees_epoch = 0;

  const std::string path;
  const std::shared_ptr<const TableDef> def;
  std::vector<TreeHandle> trees;  // as def->indexes

  // The next automatic number that nobody has; 0 until it was looked up. What rows change that are
  // written has cache lines of its own, apart from what each statement looks at.
  alignas(64) std::atomic<uint64_t> next_number{0};
  std::mutex numbers;
  // What the catalog has, and the greatest number that the column takes.
  void number_was_kept(uint64_t kept, uint64_t max);
  // To the catalog, some ahead, so that few of those who insert have to write there: after a crash
  // up to kNumbersAhead numbers are skipped.
  Error keep_number();
  // To the catalog as it is.
  Error keep_number_exactly();
  // Whether the catalog has this number, or a greater one.
  bool keeps_number(uint64_t number) const { return number <= kept_number_.load(); }

  // A new hidden key.
  Error hidden_key(uint64_t *key);

  // Its foreign keys as of now.
  Error links(std::shared_ptr<const Links> *found);

  // What others are to write beside the table's own trees.
  alignas(64) Building building{};

  alignas(64) TableCounts counts{};
  // For the query cache.
  alignas(64) const std::shared_ptr<Changes> changes = std::make_shared<Changes>();

  // The table, if it is open, that a tree is of.
  static std::shared_ptr<SharedTable> of_tree(const std::string &tree);
  // How keys of a tree are told in messages; nullptr if that is not known.
  const KeyWords *key_words(const std::string &tree) const;
  // Learns that from the first who opens the table; `numbers` are those of the server's indexes, as
  // def->indexes.
  void learn_key_words(TABLE *table, const std::vector<unsigned> &numbers);

  // Of ANALYZE TABLE, or of a quick look since; empty if there was neither.
  std::vector<IndexStatistics> statistics() const;
  void set_statistics(std::vector<IndexStatistics> found);
  Error keep_statistics();
  // Grows with each set_statistics.
  uint64_t statistics_version() const { return statistics_version_.load(); }
  // The table has doubled or halved since, and nobody is at it: who gets the lock looks anew.
  std::unique_lock<std::mutex> statistics_are_due(uint64_t rows);

 private:
  Error open_trees();
  Error read_statistics();

  Error write_number(uint64_t number);

  // The catalog has the table otherwise by now.
  std::atomic<bool> forgotten_{false};
  std::atomic<uint64_t> kept_number_{0};
  uint64_t greatest_number_ = UINT64_MAX;
  std::mutex hidden_;
  uint64_t hidden_next_ = 0;
  uint64_t hidden_end_ = 0;
  mutable std::mutex statistics_lock_;
  std::vector<IndexStatistics> statistics_;
  std::atomic<uint64_t> statistics_version_{0};
  std::atomic<uint64_t> statistics_rows_{0};
  std::mutex looking_;
  std::mutex links_lock_;
  std::shared_ptr<const Links> links_;
  std::vector<std::unique_ptr<KeyWords>> key_words_;  // as def->indexes; does not change any more
  std::atomic<bool> has_key_words_{false};
};

// The tables that are open, and which have rows in new trees.
struct OpenTables {
  std::mutex lock;  // of both maps
  std::map<std::string, std::weak_ptr<SharedTable>> by_path;
  std::map<std::string, uint64_t> epoch_by_path;
  std::atomic<uint64_t> tree_epoch{0};
};

}  // namespace shale_sql
