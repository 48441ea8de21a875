// How the keys of an index look, by its definition in the catalog alone: so that keys of one table
// are compared with those of another without the server's definition of either.
#pragma once

#include "codec/index_defs.h"
#include "codec/table_def.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// Whether InnoDB takes a foreign key from one column to the other.
bool may_reference(const PartDef &child, const PartDef &parent);

enum class Translated { kKey, kNoMatch, kDamaged };

// The first `count` columns of a key of one index as they begin the keys of another. kNoMatch: a
// column has another form, so that no row ever matches. NULLs are translated too; to a column that
// has none there is no match.
Translated translate_key(std::string_view key, const std::vector<PartDef> &from,
                         const std::vector<PartDef> &to, size_t count, std::string *out);

// Whether the first `count` columns have the same forms, so that `copy_columns` will do.
bool same_forms(const std::vector<PartDef> &from, const std::vector<PartDef> &to, size_t count);

// As `translate_key` of a key without NULLs among these columns, but much cheaper. kNoMatch: one is
// NULL.
Translated copy_columns(std::string_view key, const std::vector<PartDef> &from,
                        const std::vector<PartDef> &to, size_t count, std::string *out);

// Where the first `count` columns end; false: the key is damaged.
bool columns_end(std::string_view key, const std::vector<PartDef> &parts, size_t count,
                 size_t *end);

// Whether one of the first `count` columns is NULL. `damaged` is set in any case.
bool has_null(std::string_view key, const std::vector<PartDef> &parts, size_t count,
              bool *damaged);

}  // namespace shale_sql
