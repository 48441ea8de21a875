// The maps of foreign keys, and what statements make of them.

#include "engine/foreign_keys.h"

#include <set>

namespace shale_sql {

namespace {

constexpr std::string_view kAutomatic = "_ibfk_";

std::string database_of(const std::string &path) {
  const size_t separator = path.rfind('/');
  return separator == std::string::npos ? std::string() : path.substr(0, separator);
}

// What follows the table's name in an automatic one; empty: the name is a user's.
std::string_view automatic_end(std::string_view name, std::string_view table) {
  if (name.substr(0, table.size()) != table) return {};
  const std::string_view end = name.substr(table.size());
  return end.substr(0, kAutomatic.size()) == kAutomatic ? end : std::string_view();
}

}  // namespace

// A zero is in no path and in no name.
std::string ForeignKeys::name_key(const ForeignKey &key) const {
  return database_of(key.child) + '\0' + rules_.fold(key.name);
}

ForeignKeys::List ForeignKeys::all() const {
  std::lock_guard<std::mutex> lock(lock_);
  List found;
  for (const auto &child : by_child_) {
    for (const auto &entry : child.second) found.push_back(entry.second);
  }
  return found;
}

ForeignKeys::List ForeignKeys::of_child(const std::string &path) const {
  if (!any()) return {};
  std::lock_guard<std::mutex> lock(lock_);
  List found;
  const auto child = by_child_.find(path);
  if (child == by_child_.end()) return found;
  for (const auto &entry : child->second) found.push_back(entry.second);
  return found;
}

ForeignKeys::List ForeignKeys::list_of_parent(const std::string &path, bool intermediate) const {
  if (!any()) return {};
  std::lock_guard<std::mutex> lock(lock_);
  List found;
  const auto parent = by_parent_.find(path);
  if (parent == by_parent_.end()) return found;
  for (const auto &entry : parent->second) {
    if (counts(*entry.second) != intermediate) found.push_back(entry.second);
  }
  return found;
}

ForeignKeys::List ForeignKeys::of_parent(const std::string &path) const {
  return list_of_parent(path, false);
}

ForeignKeys::List ForeignKeys::intermediate_of_parent(const std::string &path) const {
  return list_of_parent(path, true);
}

ForeignKeys::Shared ForeignKeys::named(const std::string &path, std::string_view name) const {
  std::lock_guard<std::mutex> lock(lock_);
  const auto found = by_name_.find(database_of(path) + '\0' + rules_.fold(name));
  return found == by_name_.end() ? nullptr : found->second;
}

ForeignKeys::Change ForeignKeys::dropped(const std::string &child) const {
  return {of_child(child), {}};
}

std::string ForeignKeys::name_after_rename(const ForeignKey &key, const std::string &known_as,
                                           const std::string &to) const {
  const std::string_view end = automatic_end(key.name, rules_.table_name(known_as));
  return end.empty() ? key.name : rules_.table_name(to).append(end);
}

ForeignKeys::Change ForeignKeys::renamed(const std::string &from, const std::string &known_as,
                                         const std::string &to) const {
  // On its way through an intermediate name a table stays itself, to its children too.
  const bool stays = rules_.is_intermediate(to) || known_as == to;
  Change change;
  for (const Shared &key : of_child(from)) {
    ForeignKey is = *key;
    if (!stays) {
      is.name = name_after_rename(*key, known_as, to);
      if (is.parent == known_as) is.parent = to;
    }
    is.child = to;
    is.known_as = rules_.is_intermediate(to) ? known_as : std::string();
    if (is.known_as.empty()) is.unproven = false;
    change.gone.push_back(key);
    change.come.push_back(std::make_shared<const ForeignKey>(std::move(is)));
  }
  if (stays) return change;
  if (rules_.is_intermediate(from)) change.replaced = known_as;
  std::lock_guard<std::mutex> lock(lock_);
  const auto children = by_parent_.find(known_as);
  if (children == by_parent_.end()) return change;
  // Also a child that is being copied: the copy will have its name.
  for (const auto &entry : children->second) {
    const Shared &key = entry.second;
    if (key->child == from) continue;
    ForeignKey is = *key;
    is.parent = to;
    change.gone.push_back(key);
    change.come.push_back(std::make_shared<const ForeignKey>(std::move(is)));
  }
  return change;
}

std::string ForeignKeys::taken_by(const Change &change) const {
  std::set<std::string> free, come;
  for (const Shared &key : change.gone) {
    if (counts(*key)) free.insert(name_key(*key));
  }
  std::lock_guard<std::mutex> lock(lock_);
  for (const Shared &key : change.come) {
    if (!counts(*key)) continue;
    const std::string name = name_key(*key);
    const auto holder = by_name_.find(name);
    const bool is_there = holder != by_name_.end() && free.count(name) == 0 &&
                          holder->second->child != change.replaced;
    if (is_there || !come.insert(name).second) return key->name;
  }
  return {};
}

void ForeignKeys::remove(const ForeignKey &key) {
  const std::string entry = entry_name_of(key);
  const auto child = by_child_.find(key.child);
  if (child == by_child_.end() || child->second.count(entry) == 0) return;
  // The one that is there, whose parent may be another by now.
  const Shared was = child->second[entry];
  child->second.erase(entry);
  if (child->second.empty()) by_child_.erase(child);
  const auto parent = by_parent_.find(was->parent);
  parent->second.erase(entry);
  if (parent->second.empty()) by_parent_.erase(parent);
  // The name may be the copy's by now.
  const auto holder = by_name_.find(name_key(*was));
  if (holder != by_name_.end() && holder->second == was) by_name_.erase(holder);
  count_--;
}

void ForeignKeys::add(const Shared &key) {
  const std::string entry = entry_name_of(*key);
  by_child_[key->child][entry] = key;
  by_parent_[key->parent][entry] = key;
  if (counts(*key)) by_name_[name_key(*key)] = key;
  count_++;
}

void ForeignKeys::apply(const Change &change) {
  if (change.empty()) return;
  std::lock_guard<std::mutex> lock(lock_);
  for (const Shared &key : change.gone) remove(*key);
  // One that is there is replaced.
  for (const Shared &key : change.come) {
    remove(*key);
    add(key);
  }
  version_++;
}

}  // namespace shale_sql
