// Looks for the end of a row's time, in an entry's key or in the row.

#include "tables/past_rows.h"

#include "server.h"

#include "codec/key_shape.h"
#include "codec/row_shape.h"
#include "engine/engine.h"
#include "engine/trees.h"

namespace shale_sql {

namespace {

// TIMESTAMP(6), or the id of a transaction.
constexpr size_t kTimeBytes = 7, kIdBytes = 8;

// The greatest value of so many bytes, which a current row has.
std::string greatest(size_t size) {
  if (size == kIdBytes) return std::string(size, '\xff');
  uchar bytes[kTimeBytes];
  mi_int4store(bytes, TIMESTAMP_MAX_VALUE);
  mi_int3store(bytes + 4, TIME_MAX_SECOND_PART);
  return std::string(reinterpret_cast<const char *>(bytes), kTimeBytes);
}

}  // namespace

Error PastRows::of(const std::string &path, const TableDef &def, size_t place, PastRows *made) {
  *made = PastRows();
  if (def.row_end.column.empty()) return 0;
  made->path_ = path;
  const IndexDef &index = def.indexes[place];
  std::vector<PartDef> parts = index.parts;
  // NULL among the columns of a unique index: the primary key follows too, behind the own one.
  if (place != 0 && !index.unique) {
    parts.insert(parts.end(), def.indexes[0].parts.begin(), def.indexes[0].parts.end());
  }
  for (size_t i = 0; i < parts.size(); i++) {
    if (parts[i].column != def.row_end.column) continue;
    const size_t bytes = parts[i].fixed_bytes;
    if ((bytes != kTimeBytes && bytes != kIdBytes) || parts[i].nullable) break;
    made->where_ = Where::kInEntry;
    made->current_ = greatest(bytes);
    for (char &byte : made->current_) {
      if (parts[i].descending) byte = static_cast<char>(~byte);
    }
    made->is_last_ = index.unique && i + 1 == index.parts.size();
    parts.resize(i);
    made->parts_ = std::move(parts);
    return 0;
  }
  made->where_ = Where::kInRow;
  made->parts_ = index.parts;
  made->def_ = def;
  return open_tree(engine().db, tree_name(def.table_id, def.indexes[0].id), &made->rows_);
}

std::string PastRows::current_after(size_t columns) const {
  const bool is_one = where_ == Where::kInEntry && is_last_ && parts_.size() == columns;
  return is_one ? current_ : std::string();
}

Error PastRows::has(shale_txn *txn, std::string_view key, bool *is_past) const {
  *is_past = false;
  if (where_ == Where::kNowhere) return 0;
  size_t end = 0;
  if (!columns_end(key, parts_, parts_.size(), &end)) {
    return Error(kErrDamagedRow, "an entry of an index of " + path_ + " is damaged");
  }
  if (where_ == Where::kInEntry) {
    *is_past = key.substr(end, current_.size()) != current_;
    return 0;
  }
  const std::string_view primary = key.substr(end);
  const void *value = nullptr;
  size_t bytes = 0;
  if (Error error =
          consume_error(shale_txn_read(txn, rows_.get(), SHALE_LOCK_SHARED, primary.data(),
                                       primary.size(), &value, &bytes))) {
    return error;
  }
  std::string_view row_end;
  // A row that is gone is nobody's either.
  *is_past = value == nullptr;
  if (*is_past) return 0;
  if (!column_of_row({static_cast<const char *>(value), bytes}, def_, def_.row_end.column_id,
                     &row_end)) {
    return Error(kErrDamagedRow, "a row of " + path_ + " is damaged");
  }
  *is_past = row_end != greatest(row_end.size());
  return 0;
}

}  // namespace shale_sql
