// All foreign keys, by child and by parent, as the catalog's entries have them.
#pragma once

#include "engine/foreign_key.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// What only the server can tell of names.
struct NameRules {
  // Of letter case nothing is left.
  std::string (*fold)(std::string_view name);
  // A table's name as users write it.
  std::string (*table_name)(const std::string &path);
  // One of those that only the server gives, to what it makes on the way.
  bool (*is_intermediate)(const std::string &path);
};

class ForeignKeys {
 public:
  explicit ForeignKeys(const NameRules &rules) : rules_(rules) {}

  using Shared = std::shared_ptr<const ForeignKey>;
  using List = std::vector<Shared>;

  // What one statement does to them, in one step. Those that go are named first: others may come
  // under their names.
  struct Change {
    List gone, come;
    // The path of a table that a copy with another name replaces, and that is dropped next: its
    // names may come again.
    std::string replaced{};
    bool empty() const { return gone.empty() && come.empty(); }
  };

  // For statements on tables that have none, which pay no more than this.
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  // Grows with each change.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // By the child's path, then by name.
  List all() const;
  // By name as bytes, which is the order of SHOW CREATE TABLE.
  List of_child(const std::string &path) const;
  // By the child's path, then by name. Intermediate tables are left out: they are copies.
  List of_parent(const std::string &path) const;
  // Those of intermediate tables, where `known_as` says.
  List intermediate_of_parent(const std::string &path) const;
  // The one that has this name, letter case aside, in the database of a table; nullptr: none has.
  // Those of intermediate tables do not count.
  Shared named(const std::string &path, std::string_view name) const;

  // All of a table that goes.
  Change dropped(const std::string &child) const;
  // Those of a table that is renamed, and of its children, who follow it. Automatic names follow
  // the table's. `known_as`: the path by which its children know it, which is not that of an
  // intermediate table. A rename to an intermediate name, or to that path, redirects no child.
  Change renamed(const std::string &from, const std::string &known_as, const std::string &to) const;
  // A name that would be there twice after a change; empty: none would.
  std::string taken_by(const Change &change) const;

  void apply(const Change &change);

 private:
  std::string name_key(const ForeignKey &key) const;
  List list_of_parent(const std::string &path, bool intermediate) const;
  bool counts(const ForeignKey &key) const { return !rules_.is_intermediate(key.child); }
  void remove(const ForeignKey &key);
  void add(const Shared &key);
  std::string name_after_rename(const ForeignKey &key, const std::string &known_as,
                                const std::string &to) const;

  // By the name of the catalog's entry.
  using Entries = std::map<std::string, Shared>;

  const NameRules rules_;
  mutable std::mutex lock_;  // of the maps
  std::map<std::string, Entries> by_child_, by_parent_;
  std::map<std::string, Shared> by_name_;
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> version_{0};
};

}  // namespace shale_sql
