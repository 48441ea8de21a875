// A column of geometries in a SPATIAL index.
#pragma once

#include "codec/cells.h"
#include "codec/table_def.h"

#include <string>

struct TABLE;
struct st_key_part_info;

namespace shale_sql {

class Geometries {
 public:
  // The one part of a SPATIAL index of the table, by `fieldnr`.
  Geometries(const TABLE *table, const st_key_part_info &part);

  // The rectangle around the geometry of a row; of one that is damaged it is without points.
  Mbr mbr_of(const uchar *record) const;
  // Whether there is a geometry at all. A row without one is in no SPATIAL index.
  bool has_geometry(const uchar *record) const;

 private:
  std::string_view bytes_of_row(const uchar *record) const;

  unsigned offset_ = 0;        // of the column in the record
  unsigned length_bytes_ = 0;  // of its length
};

// That part in the catalog.
PartDef part_of_cells(const TABLE *table, const st_key_part_info &part);

}  // namespace shale_sql
