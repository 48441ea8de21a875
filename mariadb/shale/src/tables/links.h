// The foreign keys of a table as its rows are checked by: with trees and forms of keys of the other
// side, found once and again when a definition has changed.
#pragma once

#include "codec/table_def.h"
#include "engine/errors.h"
#include "engine/foreign_keys.h"
#include "engine/handles.h"
#include "tables/past_rows.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

class THD;

namespace shale_sql {

// One foreign key as seen from one of its tables.
struct Link {
  static constexpr size_t kNone = ~size_t{0};

  uint64_t number = 0;  // no other link has it, nor had it
  ForeignKeys::Shared key;
  // Of the other side's table.
  std::string database, table;
  size_t columns = 0;
  // The table's own index, by its place in the definition; kNone: it has lost it.
  size_t place = 0;
  std::vector<PartDef> own_parts;
  size_t other_place = kNone;
  // The index of the other side, and its place there; no tree: there is none, or not the table.
  TreeHandle other;
  std::vector<PartDef> other_parts;
  PastRows past;                 // among the entries of that index
  bool has_same_forms = false;   // of the parts on both sides: keys are copied
  bool is_whole_unique = false;  // the columns are all of a unique index of the other side
  std::string current;           // of a parent that is versioned: what follows them in it
};

struct Links {
  uint64_t version = 0;         // of the foreign keys, and of definitions
  std::vector<Link> parents;    // keys of which the table is the child
  std::vector<Link> children;   // keys of which it is the parent
  // Children that have no name of their own now: their statement's metadata lock is waited for.
  std::vector<std::string> awaited;
  bool empty() const { return parents.empty() && children.empty(); }
};

// Those of a table with this definition.
Error links_of(const std::string &path, const TableDef &def, std::shared_ptr<const Links> *found);
// That of one key, which may be published later. `path`: by which the key knows the table.
Error link_of(const ForeignKeys::Shared &key, const std::string &path, const TableDef &def,
              bool is_child, Link *link);
// The key of an own index as it begins keys of the other side's. Not `possible`: no row of it can
// match. Empty: none that is there can. `path`: for the error's text.
Error key_of_other(const Link &link, std::string_view key, const std::string &path,
                   std::string *other, bool *possible);
// Until the transaction ends nobody changes a table's definition. 0, or an error's number.
int lock_definition(THD *thd, const std::string &path);
int lock_definition(THD *thd, const Link &link);  // of the other side
// The same of a key's parent, and of its name: before that somebody may have changed either. `key`
// is as it is then.
int lock_parent(THD *thd, ForeignKeys::Shared *key);
// The number of the error with which a metadata lock was not given, which is told already.
int error_of_metadata_lock(THD *thd);
// Whether the connection (nullptr: there is none) wants rows to be checked.
bool checks_foreign_keys(const THD *thd);
// Changes with each foreign key and each definition; 0: there are no foreign keys at all.
uint64_t links_version();

}  // namespace shale_sql
