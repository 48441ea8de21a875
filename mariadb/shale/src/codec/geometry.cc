// The rectangle around a geometry is what the server's own functions take for it.

#include "codec/geometry.h"

#include "server.h"

#include "codec/number_form.h"

namespace shale_sql {

namespace {

// As of any type that InnoDB keeps as a geometry.
constexpr char kKind[] = "g";

}  // namespace

Geometries::Geometries(const TABLE *table, const KEY_PART_INFO &part) {
  const Field *field = table->field[part.fieldnr - 1];
  offset_ = static_cast<unsigned>(field->ptr - table->record[0]);
  length_bytes_ = field->pack_length() - portable_sizeof_char_ptr;
}

std::string_view Geometries::bytes_of_row(const uchar *record) const {
  const uchar *from = record + offset_;
  const char *bytes;
  memcpy(&bytes, from + length_bytes_, sizeof(bytes));
  const size_t length = load_low_first(from, length_bytes_);
  return length == 0 ? std::string_view() : std::string_view(bytes, length);
}

bool Geometries::has_geometry(const uchar *record) const {
  return bytes_of_row(record).size() >= SRID_SIZE;
}

Mbr Geometries::mbr_of(const uchar *record) const {
  const std::string_view bytes = bytes_of_row(record);
  Geometry_buffer buffer;
  MBR mbr;
  const char *end;
  Geometry *geometry =
      Geometry::construct(&buffer, bytes.data(), static_cast<uint32>(bytes.size()));
  if (geometry == nullptr || geometry->get_mbr(&mbr, &end)) mbr = MBR();
  return {mbr.xmin, mbr.xmax, mbr.ymin, mbr.ymax};
}

PartDef part_of_cells(const TABLE *table, const KEY_PART_INFO &info) {
  const Field *field = table->field[info.fieldnr - 1];
  PartDef part;
  part.column.assign(field->field_name.str, field->field_name.length);
  part.kind = kKind;
  part.form.assign(1, static_cast<char>(FormClass::kCell));
  append_varint(&part.form, kCellBytes);
  part.fixed_bytes = kCellBytes;
  return part;
}

}  // namespace shale_sql
