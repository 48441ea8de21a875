// A foreign key, and its entry in the catalog as bytes. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// What becomes of a child's rows when the parent's row goes or changes.
enum class ForeignAction : uint8_t { kRestrict, kNoAction, kCascade, kSetNull, kSetDefault };

struct ForeignKey {
  std::string child;   // the path of its table
  std::string name;    // unique in the child's database
  std::string parent;  // a path; whoever comes to have it is the parent
  std::vector<std::string> columns;         // of the child
  std::vector<std::string> parent_columns;  // as many
  ForeignAction on_delete = ForeignAction::kRestrict;
  ForeignAction on_update = ForeignAction::kRestrict;
  // Made by a statement that still fills the table, whose rows are compared at the end. In memory
  // only.
  bool unproven = false;
  // Of an intermediate child: the path of the table that it is, or will be. In memory only.
  std::string known_as{};
};

// What identifies it: the child's path, a zero (which no path has), its name.
std::string entry_name_of(const ForeignKey &key);
// The rest of it, behind the number of the format.
std::string bytes_of(const ForeignKey &key);
// False: the entry is damaged.
bool parse(std::string_view entry_name, std::string_view bytes, ForeignKey *key);

}  // namespace shale_sql
