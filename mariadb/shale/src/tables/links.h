// The foreign keys of a table as its rows are checked by: with trees and forms of keys of the other
// side, found once and again when a definition has changed.
#pragma once

#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/foreign_keys.h"
#include "engine/handles.h"

#include <memory>
#include <string>
#include <vector>

namespace shale_sql {

// One foreign key as seen from one of its tables.
struct Link {
  static constexpr size_t kNone = ~size_t{0};

  ForeignKeys::Shared key;
  size_t columns = 0;
  // The table's own index, by its place in the definition; kNone: it has lost it.
  size_t place = 0;
  std::vector<PartDef> own_parts;
  size_t other_place = kNone;
  // The index of the other side, and its place there; no tree: it has none, or the table is not there.
  TreeHandle other;
  std::vector<PartDef> other_parts;
  bool is_whole_unique = false;  // the columns are all of a unique index of the other side

};

struct Links {
  uint64_t version = 0;         // of the foreign keys, and of definitions
  std::vector<Link> parents;    // keys of which the table is the child
  std::vector<Link> children;   // keys of which it is the parent
  bool empty() const { return parents.empty() && children.empty(); }
};

// Those of a table with this definition.
Error links_of(const std::string &path, const TableDef &def, std::shared_ptr<const Links> *found);
// Changes with each foreign key and each definition; 0: there are no foreign keys at all.
uint64_t links_version();

}  // namespace shale_sql
