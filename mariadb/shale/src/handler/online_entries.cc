// Entries of indexes that are being built, packed.

#include "handler/online_entries.h"

namespace shale_sql {

void OnlineEntries::Entry::pack(const KeyCodec &codec, const uchar *row,
                                std::string_view primary) {
  bool has_null = false;
  key.clear();
  value.clear();
  codec.pack_columns(row, &key, &has_null);
  codec.append_primary(primary, has_null, &key);
  codec.pack_value(row, primary, has_null, &value);
}

}  // namespace shale_sql
