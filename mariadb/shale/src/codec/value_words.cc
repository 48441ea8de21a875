// The bytes of each type, as keys have them, printed.

#include "codec/value_words.h"

#include "server.h"

#include "codec/number_form.h"

#include <cstdarg>

namespace shale_sql {

namespace {

std::string format(const char *form, ...) ATTRIBUTE_FORMAT(printf, 1, 2);
std::string format(const char *form, ...) {
  char text[80];
  va_list arguments;
  va_start(arguments, form);
  vsnprintf(text, sizeof(text), form, arguments);
  va_end(arguments);
  return text;
}

// Bytes of a fraction as microseconds.
uint64_t micros_of(uint64_t fraction, size_t bytes) {
  return bytes == 1 ? fraction * 10000 : bytes == 2 ? fraction * 100 : fraction;
}

std::string with_fraction(std::string text, uint64_t micros, unsigned decimals) {
  if (decimals == 0) return text;
  return text + "." + format("%06u", static_cast<unsigned>(micros)).substr(0, decimals);
}

}  // namespace

std::string hex_of(const uchar *from, size_t n) {
  static const char digits[] = "0123456789ABCDEF";
  std::string out = "x'";
  for (size_t i = 0; i < std::min(n, kShown); i++) {
    out += digits[from[i] >> 4];
    out += digits[from[i] & 15];
  }
  return out + (n > kShown ? "...'" : "'");
}

std::string quoted(const char *text, size_t n) {
  std::string out = "'";
  for (size_t i = 0; i < n && i < kShown; i++) {
    if (text[i] == '\'' || text[i] == '\\') out += '\\';
    out += static_cast<uchar>(text[i]) < ' ' ? '?' : text[i];
  }
  return out + (n > kShown ? "...'" : "'");
}

uint64_t high_first(const uchar *from, size_t n) {
  uint64_t value = 0;
  for (size_t i = 0; i < n; i++) value = value << 8 | from[i];
  return value;
}

std::string datetime_of(const uchar *from, size_t n, unsigned decimals) {
  uint64_t whole = high_first(from, 5) - 0x8000000000ULL;
  uint64_t days = whole >> 17, time = whole & 0x1ffff, months = days >> 5;
  std::string text =
      format("'%04u-%02u-%02u %02u:%02u:%02u", unsigned(months / 13), unsigned(months % 13),
             unsigned(days & 31), unsigned(time >> 12), unsigned(time >> 6 & 63),
             unsigned(time & 63));
  return with_fraction(text, micros_of(high_first(from + 5, n - 5), n - 5), decimals) + "'";
}

std::string time_of(const uchar *from, size_t n, unsigned decimals) {
  size_t bits = 8 * (n - 3);
  int64_t value = static_cast<int64_t>(high_first(from, n)) - (int64_t{0x800000} << bits);
  uint64_t size = static_cast<uint64_t>(value < 0 ? -value : value);
  uint64_t whole = size >> bits, fraction = size & ((uint64_t{1} << bits) - 1);
  std::string text = format("'%s%02u:%02u:%02u", value < 0 ? "-" : "",
                            unsigned(whole >> 12 & 0x3ff), unsigned(whole >> 6 & 63),
                            unsigned(whole & 63));
  return with_fraction(text, micros_of(fraction, n - 3), decimals) + "'";
}

// In UTC: whose time zone it would be, a message does not know.
std::string timestamp_of(const uchar *from, size_t n, unsigned decimals) {
  time_t seconds = static_cast<time_t>(high_first(from, 4));
  struct tm utc;
  gmtime_r(&seconds, &utc);
  char text[40];
  strftime(text, sizeof(text), "'%Y-%m-%d %H:%M:%S", &utc);
  return with_fraction(text, micros_of(high_first(from + 4, n - 4), n - 4), decimals) + "' UTC";
}

std::string decimal_of(const uchar *from, unsigned precision, unsigned scale) {
  my_decimal value;
  String text;
  if (binary2my_decimal(E_DEC_OK, from, &value, precision, scale) != E_DEC_OK ||
      value.to_string(&text) == nullptr) {
    return "?";
  }
  return std::string(text.ptr(), text.length());
}

// An integer of the record's form.
std::string integer_of(const uchar *from, size_t n, enum_field_types type, bool is_signed) {
  uint64_t value = load_low_first(from, static_cast<unsigned>(n));
  switch (type) {
    case MYSQL_TYPE_YEAR:
      return std::to_string(value == 0 ? 0 : 1900 + value);
    case MYSQL_TYPE_NEWDATE:
      return format("'%04u-%02u-%02u'", unsigned(value >> 9), unsigned(value >> 5 & 15),
                    unsigned(value & 31));
    default:
      break;
  }
  if (!is_signed) return std::to_string(value);
  unsigned unused = 64 - 8 * static_cast<unsigned>(n);
  return std::to_string(static_cast<int64_t>(value << unused) >> unused);
}

std::string real_of(const uchar *from, size_t n) {
  if (n == sizeof(float)) {
    float value;
    memcpy(&value, from, n);
    return format("%.6g", static_cast<double>(value));
  }
  double value;
  memcpy(&value, from, sizeof(value));
  return format("%.15g", value);
}

}  // namespace shale_sql
