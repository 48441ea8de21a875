// The values of columns as SQL prints them, out of the bytes of keys. Descending parts have their
// bits turned back before.
#pragma once

#include "server.h"

#include "codec/bytes.h"

#include <string>

namespace shale_sql {

// A longer text, or more bytes, are cut.
constexpr size_t kShown = 40;

std::string hex_of(const uchar *from, size_t n);
std::string quoted(const char *text, size_t n);
// A number whose highest byte comes first.
uint64_t high_first(const uchar *from, size_t n);
std::string datetime_of(const uchar *from, size_t n, unsigned decimals);
std::string time_of(const uchar *from, size_t n, unsigned decimals);
std::string timestamp_of(const uchar *from, size_t n, unsigned decimals);
std::string decimal_of(const uchar *from, unsigned precision, unsigned scale);
// These two as the record has them.
std::string integer_of(const uchar *from, size_t n, enum_field_types type, bool is_signed);
std::string real_of(const uchar *from, size_t n);

}  // namespace shale_sql
