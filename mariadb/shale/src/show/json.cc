// A parser of JSON, as far as the reports need it.

#include "show/json.h"

#include <cstdlib>

namespace shale_sql {

struct Json::Parser {
  std::string_view left;
  unsigned depth = 0;

  void space() {
    while (!left.empty() && (left[0] == ' ' || left[0] == '\n' || left[0] == '\t')) next();
  }
  void next() { left.remove_prefix(1); }
  bool take(char sign) {
    space();
    if (left.empty() || left[0] != sign) return false;
    next();
    return true;
  }

  // One code of \uXXXX, as UTF-8; half of a pair is left out.
  void unicode(std::string *out) {
    if (left.size() < 4) return;
    unsigned long code = strtoul(std::string(left.substr(0, 4)).c_str(), nullptr, 16);
    left.remove_prefix(4);
    if (code < 0x80) {
      out->push_back(static_cast<char>(code));
    } else if (code < 0x800) {
      out->push_back(static_cast<char>(0xc0 | code >> 6));
      out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
    } else if (code < 0xd800 || code > 0xdfff) {
      out->push_back(static_cast<char>(0xe0 | code >> 12));
      out->push_back(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
      out->push_back(static_cast<char>(0x80 | (code & 0x3f)));
    }
  }

  bool string(std::string *out) {
    if (!take('"')) return false;
    while (!left.empty() && left[0] != '"') {
      char sign = left[0];
      next();
      if (sign != '\\') {
        out->push_back(sign);
        continue;
      }
      if (left.empty()) return false;
      char escaped = left[0];
      next();
      switch (escaped) {
        case 'n': out->push_back('\n'); break;
        case 't': out->push_back('\t'); break;
        case 'r': out->push_back('\r'); break;
        case 'b': out->push_back('\b'); break;
        case 'f': out->push_back('\f'); break;
        case 'u': unicode(out); break;
        default: out->push_back(escaped);
      }
    }
    return take('"');
  }

  bool array(Json *out) {
    out->kind_ = Kind::kArray;
    next();
    if (take(']')) return true;
    do {
      out->elements_.emplace_back();
      if (!value(&out->elements_.back())) return false;
    } while (take(','));
    return take(']');
  }

  bool object(Json *out) {
    out->kind_ = Kind::kObject;
    next();
    if (take('}')) return true;
    do {
      std::string name;
      if (!string(&name) || !take(':') || !value(&out->members_[name])) return false;
    } while (take(','));
    return take('}');
  }

  bool scalar(Json *out) {
    size_t length = left.find_first_of(",]} \n\t");
    out->text_ = left.substr(0, length);
    left.remove_prefix(out->text_.size());
    if (out->text_ == "null") return true;
    bool is_true = out->text_ == "true";
    if (is_true || out->text_ == "false") {
      out->kind_ = Kind::kTruth;
      out->number_ = is_true;
      return true;
    }
    char *end = nullptr;
    out->number_ = strtod(out->text_.c_str(), &end);
    out->kind_ = Kind::kNumber;
    return end != out->text_.c_str() && *end == '\0';
  }

  bool value(Json *out) {
    space();
    if (left.empty() || depth > 100) return false;
    depth++;
    bool good = false;
    if (left[0] == '{') {
      good = object(out);
    } else if (left[0] == '[') {
      good = array(out);
    } else if (left[0] == '"') {
      out->kind_ = Kind::kText;
      good = string(&out->text_);
    } else {
      good = scalar(out);
    }
    depth--;
    return good;
  }
};

Json Json::parse(std::string_view text) {
  Json value;
  Parser parser{text};
  return parser.value(&value) ? value : Json();
}

const Json &Json::operator[](const std::string &name) const {
  static const Json nothing;
  auto found = members_.find(name);
  return found == members_.end() ? nothing : found->second;
}

}  // namespace shale_sql
