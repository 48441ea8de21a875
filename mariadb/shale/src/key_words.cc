#include "server.h"

#include "key_words.h"

#include "key_part.h"
#include "number_form.h"
#include "report.h"
#include "shared_table.h"

#include <cstdarg>
#include <map>

namespace shale_sql {

namespace {

// A longer text, or more bytes, are cut.
constexpr size_t kShown = 40;
constexpr size_t kHiddenBytes = 8;
// How the forms of texts end (text_form.h): the plain one, and the one with spaces as pads.
constexpr char kEnds[][3] = {"\0\0", " \2"};

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

// The bytes of a key as the engine writes them; `cut`: some are missing.
std::string unescaped(std::string_view text, bool *cut) {
  *cut = text.size() >= 3 && text.substr(text.size() - 3) == "...";
  if (*cut) text.remove_suffix(3);
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    char kind = text[++i];
    if (kind == 'x' && i + 2 < text.size()) {
      out += static_cast<char>(strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += kind == 't' ? '\t' : kind == 'r' ? '\r' : kind == 'n' ? '\n' : kind;
    }
  }
  return out;
}

// What stands between the marks that come next, from `from` on.
bool next_marked(const std::string &text, size_t *from, std::string_view *marked) {
  size_t begin = text.find('`', *from);
  size_t end = begin == std::string::npos ? begin : text.find('`', begin + 1);
  if (end == std::string::npos) return false;
  *marked = std::string_view(text).substr(begin + 1, end - begin - 1);
  *from = end + 1;
  return true;
}

// The words for one key or for a range of keys, without the tree. Empty: nothing is known of them.
std::string keys_in_words(const KeyWords *words, const std::string &keys) {
  if (words == nullptr) return "";
  std::vector<std::string> values;
  std::vector<bool> after;
  std::string_view marked;
  for (size_t from = 0; next_marked(keys, &from, &marked);) {
    bool cut = false, above = false;
    std::string key = unescaped(marked, &cut);
    values.push_back(key.empty() ? "" : words->of(key, cut, &above));
    after.push_back(above);
  }
  if (values.empty()) return "";
  if (keys.compare(0, 4, "key ") == 0) return "key " + values[0];
  std::string text = "the keys ";
  text += values[0].empty() ? "from the first on" : (after[0] ? "after " : "from ") + values[0];
  if (values.size() == 2) text += (after[1] ? " up to " : " to before ") + values[1];
  return text;
}

}  // namespace

KeyWords::KeyWords(TABLE *table, unsigned index) {
  if (index >= MAX_KEY) return;
  auto add = [&](unsigned number) {
    for (unsigned i = 0; i < table->key_info[number].user_defined_key_parts; i++) {
      parts_.emplace_back(table, number, i);
    }
  };
  add(index);
  unsigned primary = table->s->primary_key;
  if (primary != index && primary < MAX_KEY) add(primary);
}

KeyWords::~KeyWords() = default;

std::string KeyWords::of(std::string_view key, bool cut, bool *after) const {
  std::string out;
  Reader reader(key);
  *after = false;
  for (const KeyPart &part : parts_) {
    if (reader.left() == 0) break;
    std::string value;
    if (!part.words(&reader, &value)) {
      out += out.empty() ? "..." : ",...";
      reader.pass(reader.left());
      break;
    }
    out += (out.empty() ? "" : ",") + value;
  }
  if (reader.left() >= kHiddenBytes) {
    out += format("%srow %llu", out.empty() ? "" : ",",
                  static_cast<unsigned long long>(high_first(reader.at(), kHiddenBytes)));
    reader.pass(kHiddenBytes);
  }
  *after = !cut && reader.left() == 1 && *reader.at() == 0;
  return "(" + out + ")";
}

bool KeyPart::words(Reader *key, std::string *out) const {
  if (null_bit_) {
    const uchar *mark = key->take(1);
    if (!mark) return false;
    if ((*mark ^ mask_) == 0) {
      *out = "NULL";
      return true;
    }
  }
  if (collation_) {
    const uchar *start = key->at();
    if (!collation_->restorable()) {
      // The weights: the text itself is in the row only.
      if (!collation_->skip(key, mask_)) return false;
      *out = hex_of(start, static_cast<size_t>(key->at() - start));
      return true;
    }
    std::string text(std::max<size_t>(bytes_, key->left() + sizeof(kEnds)), '\0');
    size_t n = 0;
    uchar *to = reinterpret_cast<uchar *>(&text[0]);
    bool whole = true;
    Reader rest = *key;
    if (!collation_->restore(&rest, mask_, to, text.size(), &n)) {
      // Of one that was cut its beginning, as if it ended there.
      whole = false;
      n = 0;
      for (const char *end : kEnds) {
        std::string closed(reinterpret_cast<const char *>(key->at()), key->left());
        for (int i = 0; i < 2; i++) closed += static_cast<char>(end[i] ^ mask_);
        Reader cut(closed);
        if (collation_->restore(&cut, mask_, to, text.size(), &n)) break;
        n = 0;
      }
    }
    if (!whole && n == 0) return false;
    key->pass(key->left() - (whole ? rest.left() : 0));
    *out = charset_ == &my_charset_bin ? hex_of(to, n) : quoted(text.data(), n);
    if (!whole && n <= kShown) *out += "...";
    return true;
  }
  const uchar *from = key->take(form_bytes_);
  if (!from) return false;
  uchar number[8] = {};
  std::string turned(reinterpret_cast<const char *>(from), form_bytes_);
  for (char &byte : turned) byte = static_cast<char>(byte ^ mask_);
  const uchar *bytes = reinterpret_cast<const uchar *>(turned.data());
  switch (form_) {
    case Form::kInteger:
      restore_integer(from, number, bytes_, turn_);
      *out = integer_of(number, bytes_, type_, signed_);
      return true;
    case Form::kReal:
      restore_real(from, number, bytes_, turn_);
      *out = real_of(number, bytes_);
      return true;
    case Form::kBits:
      *out = std::to_string(high_first(bytes, form_bytes_));
      return true;
    default:
      break;
  }
  switch (type_) {
    case MYSQL_TYPE_DATETIME2:
      *out = datetime_of(bytes, form_bytes_, decimals_);
      return true;
    case MYSQL_TYPE_TIME2:
      *out = time_of(bytes, form_bytes_, decimals_);
      return true;
    case MYSQL_TYPE_TIMESTAMP2:
      *out = timestamp_of(bytes, form_bytes_, decimals_);
      return true;
    case MYSQL_TYPE_NEWDECIMAL:
      *out = decimal_of(bytes, precision_, decimals_);
      return true;
    case MYSQL_TYPE_BIT:
      *out = std::to_string(high_first(bytes, form_bytes_));
      return true;
    default:
      *out = hex_of(bytes, form_bytes_);
      return true;
  }
}

std::string in_words(const std::string &text) {
  static const std::string of_tree = " of tree `";
  std::map<std::string, TreeOwner> owners;
  bool asked = false;
  std::string out;
  size_t from = 0;
  for (;;) {
    size_t at = text.find(of_tree, from);
    size_t end = at == std::string::npos ? at : text.find('`', at + of_tree.size());
    if (end == std::string::npos) return out + text.substr(from);
    std::string tree = text.substr(at + of_tree.size(), end - at - of_tree.size());
    size_t keys = std::min(text.find("key `", from), text.find("the keys from `", from));
    keys = std::min(keys, at);
    std::string words;
    std::shared_ptr<SharedTable> table = SharedTable::of_tree(tree);
    if (table != nullptr) {
      words = keys_in_words(table->key_words(tree), text.substr(keys, at - keys));
      SharedTable::close(&table);
    }
    if (!asked) owners = tree_owners();
    asked = true;
    bool known = owners.find(tree) != owners.end();
    out += text.substr(from, keys - from);
    out += words.empty() ? "a key" : words;
    out += " of " + (known ? name_of(owners, tree) : "tree " + tree);
    from = end + 1;
  }
}

}  // namespace shale_sql
