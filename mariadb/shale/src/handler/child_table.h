// The server's TABLE of a child whose rows an action changes.
#pragma once

#include "server.h"

#include <memory>
#include <string>

namespace shale_sql {

// The one that the server has opened with the statement's tables, or else one of its own. The
// server does not know of all children: a prepared statement keeps the list of its first execution,
// and what ON UPDATE does after ON DELETE SET NULL is not asked for.
class ChildTable {
 public:
  ChildTable(THD *thd, const std::string &path);
  ~ChildTable();
  ChildTable(const ChildTable &) = delete;
  ChildTable &operator=(const ChildTable &) = delete;

  // nullptr: it cannot be opened, or is not of this engine any more.
  TABLE *table() const { return table_; }
  // Of opening it, which was told; 0: there was none.
  int error() const { return error_; }

 private:
  void find(const std::string &path);
  void open();

  THD *thd_;
  std::string database_, name_;
  TABLE *table_ = nullptr;
  int error_ = 0;
  struct Own {
    TABLE_LIST list;
    TABLE table;
    TABLE_SHARE *share = nullptr;
    bool is_locked = false;
  };
  std::unique_ptr<Own> own_;
};

}  // namespace shale_sql
