// One table of a backup, as `mariadb/backup` makes it: of the folder `shale`, which is opened for
// reading, and of `definitions`. The backup stays as it is.
#pragma once

#include "backup/table_copy.h"
#include "engine/catalog.h"
#include "engine/errors.h"

#include <string>
#include <vector>

class THD;

namespace shale_sql {

class BackupSource : public TableSource {
 public:
  // `from`: a backup's folder, of which the table at `path` is taken, or the place of another one's
  // definition in it (`/backups/monday/definitions/shop/orders.frm`, of a partition
  // `.../orders#P#p0`).
  BackupSource(THD *thd, const std::string &from, const std::string &path);
  ~BackupSource() override;

  Error begin(TableCopy *table) override;
  Error fill(THD *thd, const std::vector<TreeHandle> &trees) override;

 private:
  Error open();
  Error read_schema(std::string *words);
  Error failed(const std::string &what) const;

  THD *const thd_;
  std::string folder_, table_;  // table_: schema and name, as files are named
  shale_db *db_ = nullptr;
  Catalog catalog_;
  TableDef def_;
};

}  // namespace shale_sql
