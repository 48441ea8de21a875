// Rows against foreign keys: a child's row has its parent, a parent's row that goes has no child.
// Who shows a child holds its parent's entry shared, and who removes that entry has it exclusively
// before it looks for children: one of them waits, and then sees what the other did.

#include "handler/ha_shale.h"

#include "codec/key_shape.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/trees.h"
#include "tables/constraint_text.h"
#include "tables/links.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// Between two looks at whether the statement was killed.
constexpr uint64_t kEntriesBetweenLooks = 1024;

}  // namespace

// At a statement's first write, and again if a foreign key was made or dropped meanwhile. The
// definitions of the other sides stay as they are from here on, so they are looked at once more if
// they have changed before that.
int ha_shale::begin_references() {
  references_.reset();
  references_version_ = 0;
  // All rows of a copy are looked at when it ends.
  if (load_.in_parts == Load::Parts::kOfCopy) return 0;
  THD *thd = ha_thd();
  for (;;) {
    references_version_ = links_version();
    if (references_version_ == 0) return 0;
    std::shared_ptr<const Links> links;
    if (Error error = shared_->links(&links)) {
      // A tree may have gone meanwhile.
      if (references_version_ != links_version()) continue;
      return note(std::move(error));
    }
    references_version_ = links->version;
    if (checks_foreign_keys(thd)) {
      for (const std::string &path : links->awaited) {
        if (int error = lock_definition(thd, path)) return error;
      }
      if (references_version_ != links_version()) continue;
    }
    if (links->empty()) return 0;
    references_ = std::move(links);
    if (!checks_foreign_keys(thd)) return 0;
    for (const Link &link : references_->parents) {
      if (int error = lock_definition(thd, link)) return error;
    }
    for (const Link &link : references_->children) {
      if (int error = lock_definition(thd, link)) return error;
    }
    if (references_version_ == links_version()) return 0;
  }
}

bool ha_shale::has_parents(size_t place) const {
  for (const Link &link : references_->parents) {
    if (link.place == place || link.place == Link::kNone) return true;
  }
  return false;
}

bool ha_shale::has_children(size_t place) const {
  for (const Link &link : references_->children) {
    if (link.place == place) return true;
  }
  return false;
}

int ha_shale::no_parent(const ForeignKey &key) {
  const std::string text = told_of(key);
  engine().failed_reference.note("a row has no parent: " + text);
  return failed(HA_ERR_NO_REFERENCED_ROW, text);
}

int ha_shale::has_child(const ForeignKey &key) {
  const std::string text = told_of(key);
  engine().failed_reference.note("a row has children: " + text);
  return failed(HA_ERR_ROW_IS_REFERENCED, text);
}

// Before a row goes or changes, which may be one that this transaction has found as a parent.
void ha_shale::forget_own_parents() {
  if (!references_->children.empty()) trx()->known_parents().forget();
}

int ha_shale::parent_is_missing(const RowWrite::Required &parent) {
  trx()->unlock(parent.link->other.get(), parent.key);
  return no_parent(*parent.link->key);
}

// Whether the parent's index has an entry that begins with a key: locked shared, and looked at as
// it is now.
int ha_shale::look_up_parent(const Link &link, const std::string &key, bool *found) {
  if (!link.is_whole_unique) return scan_other(link, key, found);
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  const void *value = nullptr;
  size_t bytes = 0;
  if (int error = consume_error(shale_txn_read(txn, link.other.get(), SHALE_LOCK_SHARED, key.data(),
                                               key.size(), &value, &bytes))) {
    return error;
  }
  *found = value != nullptr;
  if (!*found) trx()->unlock(link.other.get(), key);
  return 0;
}

// The same of the index of either side. It waits for rows, not for those who have locked a place
// where no row is: nobody puts a child there while its parent's entry is locked.
int ha_shale::scan_other(const Link &link, const std::string &key, bool *found) {
  *found = false;
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  std::string end = key;
  const bool has_end = next_of_length(&end);
  Cursor cursor;
  int error = note(
      cursor.begin(txn, link.other.get(), SHALE_LOCK_SHARED, key, has_end, end, true, false));
  for (uint64_t entries = 1; error == 0; entries++) {
    bool is_past = false;
    error = note(cursor.step(txn, false, found));
    *found = *found && begins_with(cursor.key(), key);
    if (error != 0 || !*found) return error;
    error = note(link.past.has(txn, cursor.key(), &is_past));
    if (error != 0 || !is_past) return error;
    const bool looks = entries % kEntriesBetweenLooks == 0;
    if (looks && thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
  }
  return error;
}

// Whether a row of a system-versioned table is one of the past, which foreign keys do not know.
bool ha_shale::is_past(const uchar *row) const {
  if (!table->versioned()) return false;
  const Field *end = table->vers_end_field();
  return !end->is_max(end->ptr_in_record(row));
}

// Then there is no parent to be looked for.
bool ha_shale::has_null_of(const ForeignKey &key, const uchar *row) const {
  for (const std::string &column : key.columns) {
    const Field *field = field_named(table->field, column);
    if (field != nullptr && field->is_null_in_record(row)) return true;
  }
  return false;
}

// Before the entry of an index is written, of `row`.
int ha_shale::check_parents_of(size_t place, const RowKeys &keys, const uchar *row) {
  if (!has_parents(place) || !checks_foreign_keys(ha_thd()) || is_past(row)) return 0;
  KnownParents &known = trx()->known_parents();
  const std::string &own = place == 0 ? keys.primary : keys.keys[place];
  const std::shared_ptr<const Links> links = references_;
  for (const Link &link : links->parents) {
    const bool lost = link.place == Link::kNone && place == 0;
    if (!lost && (link.place != place || link.key.get() == following_)) continue;
    if (lost && has_null_of(*link.key, row)) continue;
    bool possible = false, found = false;
    std::string key;
    if (!lost) {
      if (int error = note(key_of_other(link, own, shared_->path, &key, &possible))) return error;
      if (!possible || known.has(link.number, key)) continue;
    }
    const bool may_be_there = link.other != nullptr && !key.empty();
    if (may_be_there && link.is_whole_unique) {
      row_write_.require(link, std::move(key));
      continue;
    }
    // What the row has written so far may be its own parent, and what is refused of it is told
    // first.
    if (int error = write_part()) return error;
    if (may_be_there) {
      if (int error = scan_other(link, key, &found)) return error;
    }
    if (!found) return no_parent(*link.key);
    known.add(link.number, key);
  }
  return 0;
}

// Whether an update changes a column by any bit.
bool ha_shale::is_changed(const Field *field, const uchar *was, const uchar *is) {
  const bool was_null = field->is_null_in_record(was), is_null = field->is_null_in_record(is);
  if (was_null || is_null) return was_null != is_null;
  return field->cmp_binary(field->ptr_in_record(was), field->ptr_in_record(is)) != 0;
}

bool ha_shale::changes_referenced(const Link &link, const uchar *was, const uchar *is) const {
  for (const std::string &column : link.key->parent_columns) {
    const Field *field = field_named(table->field, column);
    if (field != nullptr && is_changed(field, was, is)) return true;
  }
  return false;
}

// After the entry of an index was erased, which is locked by that; or the row, whose entry says
// nothing of the past. `is` is the row as it becomes; nullptr: it goes.
int ha_shale::check_children_of(size_t place, const RowKeys &keys, const uchar *was,
                                const uchar *is) {
  if (!has_children(place) || !checks_foreign_keys(ha_thd()) || is_past(was)) return 0;
  if (is != nullptr && is_past(is)) is = nullptr;
  bool written = false;
  const std::string &own = place == 0 ? keys.primary : keys.keys[place];
  // Actions come back to this handler, which has others if a definition changes meanwhile.
  const std::shared_ptr<const Links> links = references_;
  for (const Link &link : links->children) {
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
      if (int error = cascade(link, key, {table, was, is})) return error;
      continue;
    }
    if (int error = scan_other(link, key, &found)) return error;
    if (found) return has_child(*link.key);
  }
  return 0;
}

// Looks for children of foreign keys that were made since the statement began. Who makes one does
// not wait for the statement: its child's rows ask for the lock of the parent's entry, which the
// row has had since that was erased.
int ha_shale::check_late_children(const RowKeys &keys, const uchar *was, const uchar *is) {
  if (int error = begin_references()) return error;
  for (size_t place = 0; place < indexes_.size(); place++) {
    if (int error = check_children(place, keys, was, is)) return error;
  }
  return 0;
}

// Ends the write of a row that goes, or changes.
int ha_shale::end_row_of_parent(int error, const RowKeys &keys, const uchar *was,
                                const uchar *is) {
  if (error == 0 && references_version_ != links_version()) {
    error = write_part();
    if (error == 0) error = check_late_children(keys, was, is);
  }
  error = end_row(error);
  if (error != 0 || references_version_ == links_version()) return error;
  // The entries may have been locked just now only. The row cannot be undone alone any more: no
  // IGNORE passes over this error.
  switch (error = check_late_children(keys, was, is)) {
    case 0:
    case HA_ERR_LOCK_DEADLOCK:
    case HA_ERR_LOCK_WAIT_TIMEOUT:
    case HA_ERR_LOCK_TABLE_FULL:
    case HA_ERR_ABORTED_BY_USER:
      return error;
    default:
      return HA_ERR_TABLE_DEF_CHANGED;
  }
}

// Whether all rows of a child have their parents: of foreign keys that a statement adds. `known_as`
// and `def` are those of the child as it will be.
int ha_shale::prove(const ForeignKeys::List &keys, const std::string &known_as,
                    const TableDef &def) {
  for (const ForeignKeys::Shared &key : keys) {
    if (!key->unproven) continue;
    ForeignKey told = *key;
    told.child = known_as;
    Link link;
    if (int error = note(link_of(key, known_as, def, true, &link))) return error;
    if (link.place == Link::kNone) return no_parent(told);
    const std::string name = tree_name(def.table_id, def.indexes[link.place].id);
    TreeHandle tree;
    if (int error = note(open_tree(engine().db, name, &tree))) return error;
    PastRows past;
    if (int error = note(PastRows::of(known_as, def, link.place, &past))) return error;
    if (int error = prove_entries(link, told, tree.get(), past)) return error;
  }
  return 0;
}

// Each parent is locked: nobody removes it until the foreign key can be seen. So are the entries,
// for which transactions may be prepared.
int ha_shale::prove_entries(const Link &link, const ForeignKey &told, const shale_tree *tree,
                            const PastRows &past) {
  shale_txn *txn = nullptr;
  if (int error = note(trx()->get(&txn))) return error;
  Cursor cursor;
  int error = note(cursor.begin(txn, tree, SHALE_LOCK_SHARED, {}, false, {}, false, false));
  std::string last;
  for (uint64_t entries = 1; error == 0; entries++) {
    bool found = false, possible = false, has_parent = false, is_past = false;
    error = note(cursor.step(txn, false, &found));
    if (error != 0 || !found) return error;
    if (entries % kEntriesBetweenLooks == 0) {
      if (thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
      thd_progress_report(ha_thd(), entries, std::max<ha_rows>(stats.records, entries));
    }
    size_t end = 0;
    if (!columns_end(cursor.key(), link.own_parts, link.columns, &end)) {
      return failed(kErrDamagedRow, "an entry of an index of " + told.child + " is damaged");
    }
    if (cursor.key().substr(0, end) == last) continue;
    if ((error = note(past.has(txn, cursor.key(), &is_past)))) return error;
    if (is_past) continue;
    last.assign(cursor.key().substr(0, end));
    std::string key;
    if ((error = note(key_of_other(link, last, told.child, &key, &possible)))) return error;
    if (!possible) continue;
    if (link.other != nullptr && !key.empty()) error = look_up_parent(link, key, &has_parent);
    if (error == 0 && !has_parent) return no_parent(told);
  }
  return error;
}
