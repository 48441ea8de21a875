// Lists of the rows of each word. Rows mostly come in the order of their primary keys, and so do
// the entries of a list.

#include "words/word_buffer.h"

#include <algorithm>

namespace shale_sql {

namespace {

// What a word, a row and an entry take beside their bytes, about.
constexpr size_t kListBytes = 96, kRowBytes = 32, kPlaceBytes = 16;

}  // namespace

void WordBuffer::add(const ManyEntries &entries, std::string_view primary) {
  if (!primaries_.empty() && primaries_.back() > primary) in_order_ = false;
  const auto row = static_cast<uint32_t>(primaries_.size());
  primaries_.emplace_back(primary);
  bytes_ += primary.size() + kRowBytes;
  for (const ManyEntry &entry : entries) {
    form_.assign(entry.key, 0, entry.key.size() - primary.size());
    auto [list, is_new] = lists_.try_emplace(form_);
    if (is_new) bytes_ += form_.size() + kListBytes;
    list->second.push_back({row, static_cast<uint32_t>(values_.size()),
                            static_cast<uint32_t>(entry.value.size())});
    values_.append(entry.value);
    bytes_ += entry.value.size() + kPlaceBytes;
  }
}

std::vector<WordBuffer::List *> WordBuffer::sorted() {
  std::vector<List *> lists;
  lists.reserve(lists_.size());
  for (List &list : lists_) lists.push_back(&list);
  std::sort(lists.begin(), lists.end(),
            [](const List *a, const List *b) { return a->first < b->first; });
  if (in_order_) return lists;
  for (List *list : lists) {
    std::sort(list->second.begin(), list->second.end(), [&](const Place &a, const Place &b) {
      return primaries_[a.row] < primaries_[b.row];
    });
  }
  return lists;
}

void WordBuffer::clear() {
  lists_.clear();
  primaries_.clear();
  values_.clear();
  bytes_ = 0;
  in_order_ = true;
}

}  // namespace shale_sql
