// The fields of the catalog's entries: numbers, and texts with their lengths.
#pragma once

#include "codec/bytes.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace shale_sql {

// Appends a text with its length before it.
inline void put_text(std::string *out, std::string_view text) {
  append_varint(out, text.size());
  out->append(text);
}

// Reads to the end also where the bytes are damaged, which is looked at once.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t number() {
    uint64_t result = 0;
    if (!bytes_.varint(&result)) good_ = false;
    return good_ ? result : 0;
  }

  // How many things follow: never more than there are bytes.
  uint64_t count() {
    uint64_t result = number();
    if (result > bytes_.left()) good_ = false;
    return good_ ? result : 0;
  }

  std::string text() {
    std::string_view result;
    if (!bytes_.with_length(&result)) good_ = false;
    return std::string(result);
  }

  // Nothing was damaged, and nothing is left.
  bool is_whole() const { return good_ && bytes_.left() == 0; }

 private:
  Reader bytes_;
  bool good_ = true;
};

}  // namespace shale_sql
