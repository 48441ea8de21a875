// What the tables in information_schema are made with.
#pragma once

#include "server.h"
#include <sql_acl.h>
#include <sql_i_s.h>
#include <sql_show.h>

#include "engine/engine.h"
#include "show/json.h"
#include "tables/tree_owners.h"

namespace shale_sql {

// The columns of one row, from the first on.
class Row {
 public:
  explicit Row(TABLE *table) : table_(table) { restore_record(table, s->default_values); }
  Row &text(const std::string &value, bool is_null = false) {
    Field *field = table_->field[next_++];
    if (is_null) {
      field->set_null();
    } else {
      field->set_notnull();
      field->store(value.data(), static_cast<uint>(value.size()), system_charset_info);
    }
    return *this;
  }
  Row &number(const Json &value) { return whole(value.whole()); }
  Row &whole(uint64_t value) {
    Field *field = table_->field[next_++];
    field->set_notnull();
    field->store(static_cast<longlong>(value), true);
    return *this;
  }
  Row &none() {
    table_->field[next_++]->set_null();
    return *this;
  }
  Row &real(double value) {
    table_->field[next_++]->store(value);
    return *this;
  }
  Row &owner(const std::map<std::string, TreeOwner> &owners, const std::string &tree) {
    auto found = owners.find(tree);
    bool unknown = found == owners.end();
    TreeOwner owner = unknown ? TreeOwner() : found->second;
    text(tree);
    text(owner.schema, unknown || owner.schema.empty());
    text(owner.table, unknown);
    return text(owner.index, unknown || owner.index.empty());
  }
  int store(THD *thd) { return schema_table_store_record(thd, table_) ? 1 : 0; }

 private:
  TABLE *table_;
  uint next_ = 0;
};

// Names of all schemas are in there: for those who may see what others do.
// Whether there is something to show, and this user may see it. These tables are plugins of their
// own: the engine's is kept until the statement ends, so that UNINSTALL PLUGIN waits for it.
inline bool may_see(THD *thd) {
  static const LEX_CSTRING engine_name = {STRING_WITH_LEN("SHALE")};
  if (plugin_lock_by_name(thd, &engine_name, MYSQL_STORAGE_ENGINE_PLUGIN) == nullptr) return false;
  return engine_is_started() && !check_global_access(thd, PROCESS_ACL, true);
}

inline int start_table(void *place, ST_FIELD_INFO *columns,
                       int (*fill)(THD *, TABLE_LIST *, COND *)) {
  auto *table = static_cast<ST_SCHEMA_TABLE *>(place);
  table->fields_info = columns;
  table->fill_table = fill;
  return 0;
}

}  // namespace shale_sql
