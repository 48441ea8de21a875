// What the server asks of foreign keys.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "tables/constraint_text.h"

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

// The parent's index, as KEY_COLUMN_USAGE names it; nothing while it has none.
const IndexDef *parent_index(const ForeignKey &key, TableDef *def) {
  if (engine().catalog.read(key.parent, def)) return nullptr;
  return index_with(*def, key.parent_columns);
}

void set_nullable(THD *thd, const std::vector<std::string> &columns, const IndexDef *index,
                  bool referenced, FOREIGN_KEY_INFO *info) {
  for (unsigned i = 0; index != nullptr && i < columns.size(); i++) {
    if (!index->parts[i].nullable) continue;
    info->set_nullable(thd, referenced, i, static_cast<unsigned>(columns.size()));
  }
}

FOREIGN_KEY_INFO *info_of(THD *thd, const ForeignKey &key) {
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
  TableDef def;
  const IndexDef *index = parent_index(key, &def);
  info->referenced_key_name = index == nullptr ? nullptr : copied(thd, index->name);
  set_nullable(thd, key.parent_columns, index, true, info);
  TableDef child;
  if (!engine().catalog.read(key.child, &child)) {
    set_nullable(thd, key.columns, index_with(child, key.columns), false, info);
  }
  return info;
}

int add_infos(THD *thd, const ForeignKeys::List &keys, List<FOREIGN_KEY_INFO> *list) {
  for (const ForeignKeys::Shared &key : keys) {
    FOREIGN_KEY_INFO *info = info_of(thd, *key);
    if (info == nullptr || list->push_back(info, thd->mem_root)) return HA_ERR_OUT_OF_MEM;
  }
  return 0;
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
  return add_infos(thd, engine().catalog.foreign_keys().of_child(shared_->path), list);
}

int ha_shale::get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) {
  ForeignKeys::List keys;
  for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_parent(shared_->path)) {
    // Without its index nothing of the parent matters to them, as in InnoDB.
    if (index_with(*shared_->def, key->parent_columns) != nullptr) keys.push_back(key);
  }
  return add_infos(thd, keys, list);
}

bool ha_shale::referenced_by_foreign_key() const noexcept {
  return !engine().catalog.foreign_keys().of_parent(shared_->path).empty();
}

bool ha_shale::can_switch_engines() {
  const ForeignKeys &keys = engine().catalog.foreign_keys();
  return keys.of_child(shared_->path).empty() && keys.of_parent(shared_->path).empty();
}
