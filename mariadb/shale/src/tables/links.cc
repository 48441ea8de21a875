// Finds both indexes of each foreign key of a table.

#include "tables/links.h"

#include "server.h"

#include "codec/key_shape.h"
#include "engine/engine.h"
#include "engine/trees.h"
#include "tables/constraint_text.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace shale_sql {

namespace {

std::atomic<uint64_t> last_number{0};

size_t place_of(const TableDef &def, const IndexDef *index) {
  return index == nullptr ? Link::kNone : static_cast<size_t>(index - def.indexes.data());
}

Error damaged(const std::string &path) {
  return Error(kErrDamagedRow, "an entry of an index of " + path + " is damaged");
}

Error open_other(const std::string &path, const TableDef &own, const std::string &own_path,
                 const std::vector<std::string> &columns, bool is_parent, Link *link) {
  TableDef read;
  const TableDef *def = &own;
  if (path != own_path) {
    Error error = engine().catalog.read(path, &read);
    if (error == HA_ERR_NO_SUCH_TABLE) return 0;
    if (error) return error;
    def = &read;
  }
  if (def->temporary) return 0;
  const IndexDef *index = index_with(*def, columns);
  if (index == nullptr) return 0;
  link->other_parts = index->parts;
  link->other_place = place_of(*def, index);
  if (Error error = PastRows::of(path, *def, link->other_place, &link->past)) return error;
  const bool is_unique = index == def->indexes.data() || index->unique;
  if (!link->past.any()) {
    link->is_whole_unique = is_unique && index->parts.size() == columns.size();
  } else if (is_parent) {
    link->current = link->past.current_after(columns.size());
    link->is_whole_unique = !link->current.empty();
  }
  return open_tree(engine().db, tree_name(def->table_id, index->id), &link->other);
}

}  // namespace

Error link_of(const ForeignKeys::Shared &key, const std::string &path, const TableDef &def,
              bool is_child, Link *link) {
  const std::vector<std::string> &own = is_child ? key->columns : key->parent_columns;
  const std::vector<std::string> &other = is_child ? key->parent_columns : key->columns;
  link->key = key;
  link->columns = own.size();
  const std::string &path_of_other = is_child ? key->parent : key->child;
  const IndexDef *index = index_with(def, own);
  link->number = ++last_number;
  link->place = place_of(def, index);
  if (index != nullptr) link->own_parts = index->parts;
  names_of(path_of_other, &link->database, &link->table);
  Error error = open_other(path_of_other, def, path, other, is_child, link);
  link->has_same_forms = same_forms(link->own_parts, link->other_parts, link->columns);
  return error;
}

Error key_of_other(const Link &link, std::string_view key, const std::string &path,
                   std::string *other, bool *possible) {
  if (link.has_same_forms) {
    const Translated made =
        copy_columns(key, link.own_parts, link.other_parts, link.columns, other);
    *possible = made == Translated::kKey;
    if (*possible) other->append(link.current);
    return made == Translated::kDamaged ? damaged(path) : Error();
  }
  bool is_damaged = false;
  *possible = !has_null(key, link.own_parts, link.columns, &is_damaged);
  if (is_damaged) return damaged(path);
  other->clear();
  if (!*possible || link.other == nullptr) return 0;
  switch (translate_key(key, link.own_parts, link.other_parts, link.columns, other)) {
    case Translated::kDamaged:
      return damaged(path);
    case Translated::kNoMatch:
      other->clear();
      break;
    case Translated::kKey:
      other->append(link.current);
      break;
  }
  return 0;
}

int error_of_metadata_lock(THD *thd) {
  const Diagnostics_area *told = thd->get_stmt_da();
  if (told->is_error() && told->sql_errno() == ER_LOCK_DEADLOCK) return HA_ERR_LOCK_DEADLOCK;
  return thd_killed(thd) ? HA_ERR_ABORTED_BY_USER : HA_ERR_LOCK_WAIT_TIMEOUT;
}

static int lock_name(THD *thd, const std::string &database, const std::string &table) {
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::TABLE, database.c_str(), table.c_str(), MDL_SHARED_READ,
                   MDL_TRANSACTION);
  const bool failed = thd->mdl_context.acquire_lock(&request, thd->variables.lock_wait_timeout);
  return failed ? error_of_metadata_lock(thd) : 0;
}

int lock_definition(THD *thd, const std::string &path) {
  std::string database, table;
  names_of(path, &database, &table);
  return lock_name(thd, database, table);
}

int lock_definition(THD *thd, const Link &link) {
  return lock_name(thd, link.database, link.table);
}

int lock_parent(THD *thd, ForeignKeys::Shared *key) {
  for (std::string held; held != (*key)->parent;) {
    held = (*key)->parent;
    if (int error = lock_definition(thd, held)) return error;
    for (const ForeignKeys::Shared &one : engine().catalog.foreign_keys().of_child((*key)->child)) {
      if (one->name == (*key)->name) *key = one;
    }
  }
  return 0;
}

bool checks_foreign_keys(const THD *thd) {
  return thd != nullptr && (thd->variables.option_bits & OPTION_NO_FOREIGN_KEY_CHECKS) == 0;
}

uint64_t links_version() {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  // Both only grow, so that their sum tells of each change.
  return keys.any() ? 1 + keys.version() + engine().catalog.definitions() : 0;
}

// By the child's database and the name, as InnoDB goes through them: of several that refuse a row
// the first is told.
static ForeignKeys::List in_order(ForeignKeys::List keys) {
  std::vector<std::pair<std::string, ForeignKeys::Shared>> sorted;
  for (ForeignKeys::Shared &key : keys) {
    std::string database, table;
    names_of(key->child, &database, &table);
    sorted.emplace_back(database + '/' + key->name, std::move(key));
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto &one, const auto &other) { return one.first < other.first; });
  for (size_t i = 0; i < keys.size(); i++) keys[i] = std::move(sorted[i].second);
  return keys;
}

Error links_of(const std::string &path, const TableDef &def, std::shared_ptr<const Links> *found) {
  auto links = std::make_shared<Links>();
  // Read first: a change meanwhile makes them outdated at once.
  links->version = links_version();
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  for (const ForeignKeys::Shared &key : in_order(keys.of_child(path))) {
    links->parents.emplace_back();
    if (Error error = link_of(key, path, def, true, &links->parents.back())) return error;
  }
  for (const ForeignKeys::Shared &key : in_order(keys.of_parent(path))) {
    links->children.emplace_back();
    if (Error error = link_of(key, path, def, false, &links->children.back())) return error;
  }
  for (const ForeignKeys::Shared &key : keys.intermediate_of_parent(path)) {
    if (!key->known_as.empty()) links->awaited.push_back(key->known_as);
  }
  *found = std::move(links);
  return 0;
}

}  // namespace shale_sql
