// Rows against foreign keys: a child's row has its parent, a parent's row that goes has no child.
// Who shows a child holds its parent's entry shared, and who removes that entry has it exclusively
// before it looks for children: one of them waits, and then sees what the other did.

#include "handler/ha_shale.h"

#include "codec/key_shape.h"
#include "ddl/constraints.h"
#include "engine/errors.h"
#include "tables/links.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

bool checks(THD *thd) {
  return (thd->variables.option_bits & OPTION_NO_FOREIGN_KEY_CHECKS) == 0;
}

Error damaged(const std::string &path) {
  return Error(kErrDamagedRow, "an entry of an index of " + path + " is damaged");
}

// Until the transaction ends nobody changes the other table's definition.
bool lock_definition(THD *thd, const std::string &path) {
  std::string database, table;
  names_of(path, &database, &table);
  MDL_request request;
  MDL_REQUEST_INIT(&request, MDL_key::TABLE, database.c_str(), table.c_str(), MDL_SHARED_READ,
                   MDL_TRANSACTION);
  return thd->mdl_context.acquire_lock(&request, thd->variables.lock_wait_timeout);
}

// The key of an own index as it begins keys of the other side's. False: no row of it can match.
Error key_of_other(const Link &link, std::string_view key, const std::string &path,
                   std::string *other, bool *possible) {
  bool is_damaged = false;
  *possible = !has_null(key, link.own_parts, link.columns, &is_damaged);
  if (is_damaged) return damaged(path);
  if (!*possible) return 0;
  other->clear();
  switch (translate_key(key, link.own_parts, link.other_parts, link.columns, other)) {
    case Translated::kDamaged:
      return damaged(path);
    case Translated::kNoMatch:
      other->clear();
      break;
    case Translated::kKey:
      break;
  }
  return 0;
}

}  // namespace

// At a statement's first write. The definitions of the other sides stay as they are from here on,
// so they are looked at once more if they have changed before that.
int ha_shale::begin_references() {
  references_.reset();
  if (links_version() == 0) return 0;
  THD *thd = ha_thd();
  for (;;) {
    if (int error = note(shared_->links(&references_))) return error;
    if (references_->empty()) return references_.reset(), 0;
    if (!checks(thd)) return 0;
    for (const Link &link : references_->parents) {
      if (lock_definition(thd, link.key->parent)) return HA_ERR_LOCK_WAIT_TIMEOUT;
    }
    for (const Link &link : references_->children) {
      if (lock_definition(thd, link.key->child)) return HA_ERR_LOCK_WAIT_TIMEOUT;
    }
    if (references_->version == links_version()) return 0;
  }
}

bool ha_shale::has_parents(size_t place) const {
  if (references_ == nullptr) return false;
  for (const Link &link : references_->parents) {
    if (link.place == place || link.place == Link::kNone) return true;
  }
  return false;
}

bool ha_shale::has_children(size_t place) const {
  if (references_ == nullptr) return false;
  for (const Link &link : references_->children) {
    if (link.place == place) return true;
  }
  return false;
}

int ha_shale::no_parent(const ForeignKey &key) {
  return failed(HA_ERR_NO_REFERENCED_ROW, full_name_of(key.child) + "," + clause_of(key));
}

int ha_shale::has_child(const ForeignKey &key) {
  return failed(HA_ERR_ROW_IS_REFERENCED, full_name_of(key.child) + "," + clause_of(key));
}

// Whether an index of the other side has an entry that begins with a key: locked shared, and looked
// at as it is now.
int ha_shale::look_up_other(const Link &link, const std::string &key, bool *found) {
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  *found = false;
  if (link.is_whole_unique) {
    const void *value = nullptr;
    size_t bytes = 0;
    if (int error = consume_error(shale_txn_read(txn, link.other.get(), SHALE_LOCK_SHARED,
                                                 key.data(), key.size(), &value, &bytes))) {
      return error;
    }
    *found = value != nullptr;
    if (!*found) trx()->unlock(link.other.get(), key);
    return 0;
  }
  std::string end = key;
  const bool has_end = next_after_prefix(&end);
  Cursor cursor;
  int error = note(
      cursor.begin(txn, link.other.get(), SHALE_LOCK_SHARED, key, has_end, end, true, false));
  if (error == 0) error = note(cursor.step(txn, false, found));
  return error;
}

// Before the entry of an index is written.
int ha_shale::check_parents(size_t place, const RowKeys &keys) {
  if (!has_parents(place) || !checks(ha_thd())) return 0;
  // What the row has written so far may be its own parent.
  if (int error = write_part()) return error;
  const std::string &own = place == 0 ? keys.primary : keys.keys[place];
  for (const Link &link : references_->parents) {
    if (link.place == Link::kNone && place == 0) return no_parent(*link.key);
    if (link.place != place || link.key.get() == following_) continue;
    bool possible = false, found = false;
    std::string key;
    if (int error = note(key_of_other(link, own, shared_->path, &key, &possible))) return error;
    if (!possible) continue;
    if (link.other != nullptr && !key.empty()) {
      if (int error = look_up_other(link, key, &found)) return error;
    }
    if (!found) return no_parent(*link.key);
  }
  return 0;
}

// Whether an update changes a referenced column by any bit.
bool ha_shale::changes_referenced(const Link &link, const uchar *was, const uchar *is) const {
  for (const std::string &column : link.key->parent_columns) {
    for (Field **place = table->field; *place != nullptr; place++) {
      const Field *field = *place;
      if (my_strcasecmp(system_charset_info, field->field_name.str, column.c_str()) != 0) continue;
      const bool was_null = field->is_null_in_record(was), is_null = field->is_null_in_record(is);
      if (was_null != is_null) return true;
      if (was_null) continue;
      if (field->cmp_binary(field->ptr_in_record(was), field->ptr_in_record(is)) != 0) return true;
    }
  }
  return false;
}

// After the entry of an index was erased, which is locked by that. `is` is the row as it becomes;
// nullptr: it goes.
int ha_shale::check_children(size_t place, const RowKeys &keys, const uchar *was,
                             const uchar *is) {
  if (!has_children(place) || !checks(ha_thd())) return 0;
  bool written = false;
  const std::string &own = place == 0 ? keys.primary : keys.keys[place];
  for (const Link &link : references_->children) {
    if (link.place != place || (is != nullptr && !changes_referenced(link, was, is))) continue;
    bool possible = false, found = false;
    std::string key;
    if (int error = note(key_of_other(link, own, shared_->path, &key, &possible))) return error;
    if (!possible || (link.other != nullptr && key.empty())) continue;
    if (!written) {
      if (int error = write_part()) return error;
      written = true;
    }
    if (link.other == nullptr) return has_child(*link.key);
    const ForeignAction action = action_of(link, is);
    if (action == ForeignAction::kCascade || action == ForeignAction::kSetNull) {
      if (int error = cascade(link, key, is)) return error;
      continue;
    }
    if (int error = look_up_other(link, key, &found)) return error;
    if (found) return has_child(*link.key);
  }
  return 0;
}
