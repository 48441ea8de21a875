// The map of foreign keys against one that looks through a list, and entries as bytes.

#include "check.h"
#include "engine/foreign_keys.h"

#include <algorithm>
#include <tuple>

namespace shale_sql {
namespace {

Chance chance;

std::string fold(std::string_view name) {
  std::string folded(name);
  for (char &letter : folded) letter = static_cast<char>(tolower(letter));
  return folded;
}

std::string table_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

bool is_intermediate(const std::string &path) { return table_name(path).rfind("#sql", 0) == 0; }

const NameRules kRules = {fold, table_name, is_intermediate};

ForeignKey key(std::string child, std::string name, std::string parent) {
  ForeignKey made;
  made.child = std::move(child);
  made.name = std::move(name);
  made.parent = std::move(parent);
  made.columns = {"a", "b"};
  made.parent_columns = {"x", ""};
  made.on_delete = ForeignAction::kCascade;
  made.on_update = ForeignAction::kSetDefault;
  return made;
}

ForeignKeys::Shared shared(const ForeignKey &key) { return std::make_shared<ForeignKey>(key); }

auto all_of(const ForeignKey &key) {
  return std::tie(key.child, key.name, key.parent, key.columns, key.parent_columns, key.on_delete,
                  key.on_update);
}

bool same(const ForeignKey &one, const ForeignKey &other) { return all_of(one) == all_of(other); }

void bytes_come_back() {
  const ForeignKey was = key("./d/t", "name", "./e/p");
  const std::string name = entry_name_of(was), bytes = bytes_of(was);
  ForeignKey is;
  CHECK(parse(name, bytes, &is) && same(was, is));
  // Cut anywhere, or with more behind it, it is damaged.
  for (size_t n = 0; n < bytes.size(); n++) CHECK(!parse(name, bytes.substr(0, n), &is));
  CHECK(!parse(name, bytes + '\0', &is));
  for (const char *damaged : {"", "./d/t"}) CHECK(!parse(damaged, bytes, &is));
  CHECK(!parse(std::string("\0n", 2), bytes, &is) && !parse(std::string("t\0", 2), bytes, &is));
  // Nothing is read beyond the end, whatever the bytes say.
  for (int round = 0; round < 100000; round++) {
    std::string other = bytes;
    for (uint64_t n = 1 + chance.below(4); n > 0; n--) {
      other[chance.below(other.size())] = static_cast<char>(chance.next());
    }
    other.resize(chance.below(other.size() + 1));
    parse(name, other, &is);
  }
}

void tables_are_renamed() {
  ForeignKeys keys(kRules);
  keys.apply({{}, {shared(key("./d/t", "t_ibfk_1", "./d/p")), shared(key("./d/t", "Mine", "./d/t")),
                   shared(key("./d/u", "u_ibfk_1", "./d/t"))}});
  CHECK(keys.any() && keys.of_parent("./d/t").size() == 2);
  keys.apply(keys.renamed("./d/t", "./d/t", "./d/new"));
  CHECK(keys.of_child("./d/t").empty() && keys.of_parent("./d/t").empty());
  const ForeignKeys::List own = keys.of_child("./d/new");
  CHECK(own.size() == 2 && own[0]->name == "Mine" && own[1]->name == "new_ibfk_1");
  CHECK(own[0]->parent == "./d/new" && own[1]->parent == "./d/p");
  CHECK(keys.of_child("./d/u")[0]->parent == "./d/new");
  // As ALTER TABLE by copy does: the copy has all, the table goes aside, the copy gets its name.
  keys.apply({{}, {shared(key("./d/#sql-1", "Mine", "./d/new")),
                   shared(key("./d/#sql-1", "new_ibfk_1", "./d/p"))}});
  CHECK(keys.of_parent("./d/p").size() == 1);
  keys.apply(keys.renamed("./d/new", "./d/new", "./d/#sql-2"));
  CHECK(keys.named("./d/x", "mine") == nullptr && keys.of_parent("./d/new").size() == 1);
  keys.apply(keys.renamed("./d/#sql-1", "./d/new", "./d/new"));
  keys.apply(keys.dropped("./d/#sql-2"));
  CHECK(keys.named("./d/x", "mine")->child == "./d/new");
  CHECK(keys.of_child("./d/new").size() == 2 && keys.of_parent("./d/new").size() == 2);
}

// A parent is renamed while ALTER TABLE copies its child.
void copies_follow_too() {
  ForeignKeys keys(kRules);
  keys.apply({{},
              {shared(key("./d/c", "k", "./d/p")), shared(key("./d/#sql-1", "k", "./d/p"))}});
  keys.apply(keys.renamed("./d/p", "./d/p", "./d/q"));
  keys.apply(keys.renamed("./d/c", "./d/c", "./d/#sql-2"));
  keys.apply(keys.renamed("./d/#sql-1", "./d/c", "./d/c"));
  keys.apply(keys.dropped("./d/#sql-2"));
  CHECK(keys.of_parent("./d/q").size() == 1 && keys.of_child("./d/c")[0]->parent == "./d/q");
}

// Between its two names a table is waited for by the one that it had.
void intermediate_children_are_known() {
  ForeignKeys keys(kRules);
  keys.apply({{}, {shared(key("./d/c", "k", "./d/p"))}});
  CHECK(keys.intermediate_of_parent("./d/p").empty());
  keys.apply(keys.renamed("./d/c", "./d/c", "./d/#sql-2"));
  CHECK(keys.of_parent("./d/p").empty());
  CHECK(keys.intermediate_of_parent("./d/p")[0]->known_as == "./d/c");
  keys.apply(keys.renamed("./d/#sql-2", "./d/c", "./d/c"));
  CHECK(keys.of_parent("./d/p")[0]->known_as.empty());
}

// A copy with another name comes while the old table is there, and is the parent of its children.
void copies_get_other_names() {
  ForeignKeys keys(kRules);
  keys.apply({{}, {shared(key("./d/c", "k", "./d/p")), shared(key("./d/c", "c_ibfk_1", "./d/c")),
                   shared(key("./d/u", "u_ibfk_1", "./d/c")),
                   shared(key("./d/#sql-1", "k", "./d/p")),
                   shared(key("./d/#sql-1", "c_ibfk_1", "./d/c"))}});
  const ForeignKeys::Change change = keys.renamed("./d/#sql-1", "./d/c", "./d/cc");
  CHECK(change.replaced == "./d/c" && keys.taken_by(change).empty());
  keys.apply(change);
  keys.apply(keys.dropped("./d/c"));
  CHECK(keys.of_child("./d/c").empty() && keys.of_child("./d/u")[0]->parent == "./d/cc");
  const ForeignKeys::List own = keys.of_child("./d/cc");
  CHECK(own.size() == 2 && own[0]->name == "cc_ibfk_1" && own[0]->parent == "./d/cc");
  CHECK(keys.named("./d/x", "k")->child == "./d/cc");
}

void names_are_taken_once() {
  ForeignKeys keys(kRules);
  keys.apply({{}, {shared(key("./d/t", "Mine", "./d/p"))}});
  const auto same_name = shared(key("./d/u", "mINE", "./d/p"));
  CHECK(keys.taken_by({{}, {same_name}}) == "mINE");
  CHECK(keys.taken_by({keys.of_child("./d/t"), {same_name}}).empty());
  CHECK(keys.taken_by({{}, {shared(key("./e/u", "mine", "./d/p"))}}).empty());
  CHECK(keys.taken_by({{}, {shared(key("./d/#sql-1", "mine", "./d/p"))}}).empty());
  const auto twice = shared(key("./d/u", "new", "./d/p"));
  CHECK(keys.taken_by({{}, {twice, shared(key("./d/u", "NEW", "./d/p"))}}) == "NEW");
  // An automatic name meets that of another table.
  keys.apply({{}, {shared(key("./d/a", "a_ibfk_1", "./d/p")),
                   shared(key("./d/t", "b_ibfk_1", "./d/p"))}});
  CHECK(keys.taken_by(keys.renamed("./d/a", "./d/a", "./d/b")) == "b_ibfk_1");
}

std::string some_path() {
  const std::string database = chance.one_in(2) ? "./d/" : "./e/";
  return database + (chance.one_in(5) ? "#sql-" : "t") + std::to_string(chance.below(4));
}

std::vector<ForeignKey> sorted(std::vector<ForeignKey> list) {
  std::sort(list.begin(), list.end(), [](const ForeignKey &one, const ForeignKey &other) {
    return entry_name_of(one) < entry_name_of(other);
  });
  return list;
}

void is_like(const ForeignKeys::List &found, const std::vector<ForeignKey> &wanted) {
  const std::vector<ForeignKey> list = sorted(wanted);
  CHECK(found.size() == list.size());
  for (size_t i = 0; i < list.size(); i++) CHECK(same(*found[i], list[i]));
}

// What a renamed table's list has to be, by going through all.
void rename_in(std::vector<ForeignKey> *model, const std::string &from, const std::string &to) {
  const bool stays = is_intermediate(from) || is_intermediate(to);
  for (ForeignKey &one : *model) {
    const bool redirects = !stays && one.parent == from;
    const std::string automatic = table_name(from) + "_ibfk_";
    if (one.child == from && !stays && one.name.rfind(automatic, 0) == 0) {
      one.name = table_name(to) + one.name.substr(table_name(from).size());
    }
    if (redirects) one.parent = to;
    if (one.child == from) one.child = to;
  }
}

void is_like_the_model(const ForeignKeys &keys, const std::vector<ForeignKey> &model) {
  CHECK(keys.any() == !model.empty());
  for (const char *database : {"./d/", "./e/"}) {
    for (const char *kind : {"t", "#sql-"}) {
      for (int number = 0; number < 4; number++) {
        const std::string path = database + std::string(kind) + std::to_string(number);
        std::vector<ForeignKey> children, parents;
        for (const ForeignKey &one : model) {
          if (one.child == path) children.push_back(one);
          if (one.parent == path && !is_intermediate(one.child)) parents.push_back(one);
        }
        is_like(keys.of_child(path), children);
        is_like(keys.of_parent(path), parents);
      }
    }
  }
  for (const ForeignKey &one : model) {
    if (is_intermediate(one.child)) continue;
    CHECK(same(*keys.named(one.child, fold(one.name)), one));
  }
}

void is_as_the_model() {
  ForeignKeys keys(kRules);
  std::vector<ForeignKey> model;
  for (int step = 0; step < 20000; step++) {
    const std::string path = some_path();
    ForeignKeys::Change change;
    if (chance.one_in(3)) {
      const std::string to = some_path();
      if (to == path || !keys.of_child(to).empty()) continue;
      change = keys.renamed(path, is_intermediate(path) ? to : path, to);
      if (!keys.taken_by(change).empty()) continue;
      rename_in(&model, path, to);
    } else if (chance.one_in(3)) {
      change = keys.dropped(path);
      const auto is_its = [&](const ForeignKey &one) { return one.child == path; };
      model.erase(std::remove_if(model.begin(), model.end(), is_its), model.end());
    } else {
      const std::string number = std::to_string(chance.below(3));
      const std::string name = (chance.one_in(2) ? table_name(path) + "_ibfk_" : "Name") + number;
      const ForeignKey made = key(path, name, some_path());
      change.come.push_back(shared(made));
      const auto is_same = [&](const ForeignKeys::Shared &one) { return one->name == name; };
      const ForeignKeys::List own = keys.of_child(path);
      if (std::any_of(own.begin(), own.end(), is_same)) continue;
      if (!keys.taken_by(change).empty()) continue;
      model.push_back(made);
    }
    const uint64_t version = keys.version();
    keys.apply(change);
    CHECK(keys.version() == version + (change.empty() ? 0 : 1));
    is_like_the_model(keys, model);
  }
}

}  // namespace
}  // namespace shale_sql

int main() {
  shale_sql::bytes_come_back();
  shale_sql::tables_are_renamed();
  shale_sql::intermediate_children_are_known();
  shale_sql::copies_get_other_names();
  shale_sql::copies_follow_too();
  shale_sql::names_are_taken_once();
  shale_sql::is_as_the_model();
}
