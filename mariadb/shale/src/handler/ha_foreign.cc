// What the server asks of foreign keys.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "tables/constraint_text.h"
#include "tables/links.h"

using namespace shale_sql;

namespace {

enum_fk_option option_of(ForeignAction action) {
  switch (action) {
    case ForeignAction::kCascade:
      return FK_OPTION_CASCADE;
    case ForeignAction::kSetNull:
      return FK_OPTION_SET_NULL;
    case ForeignAction::kNoAction:
      return FK_OPTION_NO_ACTION;
    // SET DEFAULT is RESTRICT, as of InnoDB.
    case ForeignAction::kRestrict:
    case ForeignAction::kSetDefault:
      break;
  }
  return FK_OPTION_RESTRICT;
}

LEX_CSTRING *copied(THD *thd, const std::string &text) {
  return thd_make_lex_string(thd, nullptr, text.data(), text.size(), 1);
}

// The indexes of both sides; without one it has no parts.
struct Sides {
  std::string parent_index;  // as KEY_COLUMN_USAGE names it
  std::vector<PartDef> parent, child;
};

Sides sides_of(const ForeignKey &key) {
  Sides sides;
  TableDef def;
  const IndexDef *index = nullptr;
  if (!engine().catalog.read(key.parent, &def)) index = index_with(def, key.parent_columns);
  if (index != nullptr) {
    sides.parent_index = index->name;
    sides.parent = index->parts;
  }
  TableDef child;
  index = nullptr;
  if (!engine().catalog.read(key.child, &child)) index = index_with(child, key.columns);
  if (index != nullptr) sides.child = index->parts;
  return sides;
}

void set_nullable(THD *thd, size_t columns, const std::vector<PartDef> &parts, bool referenced,
                  FOREIGN_KEY_INFO *info) {
  for (unsigned i = 0; i < columns && i < parts.size(); i++) {
    if (!parts[i].nullable) continue;
    info->set_nullable(thd, referenced, i, static_cast<unsigned>(columns));
  }
}

FOREIGN_KEY_INFO *info_of(THD *thd, const ForeignKey &key, const std::string *parent_index,
                          const std::vector<PartDef> &parent, const std::vector<PartDef> &child) {
  // The class has no operator for the server's memory.
  void *memory = thd_alloc(thd, sizeof(FOREIGN_KEY_INFO));
  if (memory == nullptr) return nullptr;
  auto *info = new (memory) FOREIGN_KEY_INFO();
  std::string database, table;
  info->foreign_id = copied(thd, key.name);
  names_of(key.child, &database, &table);
  info->foreign_db = copied(thd, database);
  info->foreign_table = copied(thd, table);
  names_of(key.parent, &database, &table);
  info->referenced_db = copied(thd, database);
  info->referenced_table = copied(thd, table);
  info->update_method = option_of(key.on_update);
  info->delete_method = option_of(key.on_delete);
  for (const std::string &column : key.columns) {
    info->foreign_fields.push_back(copied(thd, column), thd->mem_root);
  }
  for (const std::string &column : key.parent_columns) {
    info->referenced_fields.push_back(copied(thd, column), thd->mem_root);
  }
  info->referenced_key_name = parent_index == nullptr ? nullptr : copied(thd, *parent_index);
  set_nullable(thd, key.columns.size(), parent, true, info);
  set_nullable(thd, key.columns.size(), child, false, info);
  return info;
}

int add_info(THD *thd, FOREIGN_KEY_INFO *info, List<FOREIGN_KEY_INFO> *list) {
  return info == nullptr || list->push_back(info, thd->mem_root) ? HA_ERR_OUT_OF_MEM : 0;
}

int add_read_info(THD *thd, const ForeignKey &key, List<FOREIGN_KEY_INFO> *list) {
  const Sides sides = sides_of(key);
  const std::string *index = sides.parent.empty() ? nullptr : &sides.parent_index;
  return add_info(thd, info_of(thd, key, index, sides.parent, sides.child), list);
}

}  // namespace

char *ha_shale::get_foreign_key_create_info() {
  std::string text;
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_child(shared_->path)) {
    text += ",\n " + clause_of(*key);
  }
  return my_strdup(PSI_NOT_INSTRUMENTED, text.c_str(), MYF(0));
}

void ha_shale::free_foreign_key_create_info(char *text) { my_free(text); }

int ha_shale::get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) {
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_child(shared_->path)) {
    if (int error = add_read_info(thd, *key, list)) return error;
  }
  return 0;
}

// Asked with each statement that writes to a parent: so the catalog is not read.
int ha_shale::get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) {
  std::shared_ptr<const Links> links;
  // A child's tree may have gone meanwhile. The server does not look at an error.
  const bool are_known = !shared_->links(&links);
  // Without its index nothing of the parent matters to them, as in InnoDB.
  for (size_t i = 0; are_known && i < links->children.size(); i++) {
    const Link &link = links->children[i];
    if (link.place == Link::kNone) continue;
    FOREIGN_KEY_INFO *info = info_of(thd, *link.key, &shared_->def->indexes[link.place].name,
                                     link.own_parts, link.other_parts);
    if (int error = add_info(thd, info, list)) return error;
  }
  if (are_known) return 0;
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_parent(shared_->path)) {
    if (index_with(*shared_->def, key->parent_columns) == nullptr) continue;
    if (int error = add_read_info(thd, *key, list)) return error;
  }
  return 0;
}

bool ha_shale::referenced_by_foreign_key() const noexcept {
  return !engine().catalog.foreign_keys().of_parent(shared_->path).empty();
}

bool ha_shale::can_switch_engines() {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  return keys.of_child(shared_->path).empty() && keys.of_parent(shared_->path).empty();
}
