// The engine's reports, which are JSON, as values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

class Json {
 public:
  // Nothing at all, if the text is not JSON: reports are shown, not relied on.
  static Json parse(std::string_view text);

  bool is_null() const { return kind_ == Kind::kNull; }
  // Of an object; nothing if there is no such member.
  const Json &operator[](const std::string &name) const;
  const std::map<std::string, Json> &members() const { return members_; }
  const std::vector<Json> &elements() const { return elements_; }
  double number() const { return number_; }
  uint64_t whole() const { return number_ < 0 ? 0 : static_cast<uint64_t>(number_); }
  // Of a string; of a number or a truth as it is written.
  const std::string &text() const { return text_; }

 private:
  enum class Kind { kNull, kTruth, kNumber, kText, kArray, kObject };
  struct Parser;

  Kind kind_ = Kind::kNull;
  double number_ = 0;
  std::string text_;
  std::vector<Json> elements_;
  std::map<std::string, Json> members_;
};

}  // namespace shale_sql
