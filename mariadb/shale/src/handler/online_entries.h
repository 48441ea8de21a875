// What a statement writes to indexes that are being built (ha_online.cc).
#pragma once

#include "server.h"

#include "codec/key_codec.h"
#include "tables/building.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

struct OnlineEntries {
  struct Entry {
    std::string key, value;
    void pack(const KeyCodec &codec, const uchar *row, std::string_view primary);
  };
  struct Change {
    Entry was, is;
  };
  // Those that the statement knows of.
  std::shared_ptr<const BuildingIndexes> indexes;
  uint64_t of_codecs = 0;  // whose number that is
  std::vector<std::unique_ptr<KeyCodec>> codecs;
  // By a row, and by the one of the past that it leaves: both are applied together.
  std::vector<Change> changes, past;
};

}  // namespace shale_sql
