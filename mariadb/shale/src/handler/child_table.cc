// Finds or opens a child's table.

#include "handler/child_table.h"

#include "engine/engine.h"
#include "tables/constraint_text.h"
#include "tables/links.h"

// Of the server, which declares it where it is used.
TABLE *find_fk_open_table(THD *thd, const char *db, size_t db_len, const char *table,
                          size_t table_len);

namespace shale_sql {

ChildTable::ChildTable(THD *thd, const std::string &path) : thd_(thd) {
  find(path);
  // Its definition may be another engine's, if files were moved.
  if (table_ != nullptr && table_->file->ht != engine().hton) table_ = nullptr;
}

void ChildTable::find(const std::string &path) {
  names_of(path, &database_, &name_);
  table_ = find_fk_open_table(thd_, database_.data(), database_.size(), name_.data(), name_.size());
  if (table_ == nullptr) open();
}

// With a metadata lock to write, until the transaction ends.
void ChildTable::open() {
  error_ = HA_ERR_GENERIC;
  auto own = std::make_unique<Own>();
  const LEX_CSTRING db = {database_.c_str(), database_.size()};
  const LEX_CSTRING name = {name_.c_str(), name_.size()};
  own->list.init_one_table(&db, &name, nullptr, TL_WRITE);
  MDL_REQUEST_INIT(&own->list.mdl_request, MDL_key::TABLE, database_.c_str(), name_.c_str(),
                   MDL_SHARED_WRITE, MDL_TRANSACTION);
  if (thd_->mdl_context.acquire_lock(&own->list.mdl_request, thd_->variables.lock_wait_timeout)) {
    error_ = error_of_metadata_lock(thd_);
    return;
  }
  own->share = tdc_acquire_share(thd_, &own->list, GTS_TABLE);
  if (own->share == nullptr) return;
  const uint flags = HA_OPEN_KEYFILE | HA_TRY_READ_ONLY;
  if (open_table_from_share(thd_, own->share, &own->share->table_name, flags, EXTRA_RECORD,
                            thd_->open_options, &own->table, false) != OPEN_FRM_OK) {
    tdc_release_share(own->share);
    return;
  }
  own_ = std::move(own);
  own_->table.init(thd_, &own_->list);
  if (own_->table.vcol_fix_expr(thd_)) return;
  own_->table.use_all_columns();
  if (own_->table.file->ha_external_lock(thd_, F_WRLCK) != 0) return;
  own_->is_locked = true;
  table_ = &own_->table;
  error_ = 0;
}

ChildTable::~ChildTable() {
  if (own_ == nullptr) return;
  if (own_->is_locked) {
    own_->table.file->ha_reset();
    own_->table.file->ha_external_lock(thd_, F_UNLCK);
  }
  own_->table.vcol_cleanup_expr(thd_);
  closefrm(&own_->table);
  tdc_release_share(own_->share);
}

}  // namespace shale_sql
