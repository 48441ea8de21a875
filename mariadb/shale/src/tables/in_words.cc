// Finds the marked names of trees and the keys before them in a text, and replaces them.

#include "tables/in_words.h"

#include "server.h"

#include "tables/shared_table.h"
#include "tables/tree_owners.h"

#include <map>

namespace shale_sql {

namespace {

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

std::string text_for_clients(const Error &error) {
  return error == HA_ERR_LOCK_DEADLOCK ? in_words(error.text()) : error.text();
}

}  // namespace shale_sql
