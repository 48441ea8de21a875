// Walks over the columns of a row.

#include "codec/row_shape.h"

#include "codec/bytes.h"

namespace shale_sql {

namespace {

size_t null_bytes_of(const std::vector<ColumnDef> &form) {
  size_t bits = 0;
  for (const ColumnDef &column : form) bits += !column.in_key && column.nullable;
  return (bits + 7) / 8;
}

// The next column; false: it is damaged.
bool take(const ColumnDef &column, Reader *reader, std::string_view *bytes) {
  if (column.fixed_bytes == 0) return reader->with_length(bytes);
  const uchar *from = reader->take(column.fixed_bytes);
  if (from == nullptr) return false;
  *bytes = {reinterpret_cast<const char *>(from), column.fixed_bytes};
  return true;
}

}  // namespace

bool column_of_row(std::string_view row, const TableDef &def, uint32_t column_id,
                   std::string_view *bytes) {
  Reader reader(row);
  uint64_t number = 0;
  if (!reader.varint(&number) || number >= def.forms.size()) return false;
  const std::vector<ColumnDef> &form = def.forms[number];
  const uchar *nulls = reader.take(null_bytes_of(form));
  if (nulls == nullptr) return false;
  size_t bit = 0;
  for (const ColumnDef &column : form) {
    if (column.in_key) continue;
    bool is_null = false;
    if (column.nullable) {
      is_null = (nulls[bit / 8] >> (bit % 8) & 1) != 0;
      bit++;
    }
    if (!is_null && !take(column, &reader, bytes)) return false;
    if (column.id == column_id) return !is_null;
  }
  return false;
}

}  // namespace shale_sql
