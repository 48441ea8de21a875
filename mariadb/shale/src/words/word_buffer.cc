// Entries in the order in which rows have them, sorted by counting how many each word has. Rows
// mostly come in the order of their primary keys, and so do the entries of a word.

#include "words/word_buffer.h"

#include "words/word_codec.h"

#include <algorithm>
#include <numeric>

namespace shale_sql {

namespace {

// What a word and a row take beside their bytes, about; an entry, with its place in the order.
constexpr size_t kWordBytes = 96, kRowBytes = 32, kEntryBytes = 16;

}  // namespace

// The word's number; kNone: it goes into no index.
uint32_t WordBuffer::find_word(const WordForms &forms, const Token &token) {
  text_.assign(token.text);
  const auto [known, is_new] = known_.try_emplace(text_, kNone);
  if (!is_new) return known->second;
  word_bytes_ += text_.size() + kWordBytes;
  std::string form;
  if (!forms.form_of(token, &form)) return kNone;
  const auto next = static_cast<uint32_t>(words_.size());
  const auto [place, is_new_form] = forms_.try_emplace(std::move(form), next);
  if (is_new_form) {
    words_.push_back({&place->first});
    word_bytes_ += place->first.size() + kWordBytes;
  }
  return known->second = place->second;
}

void WordBuffer::add(const WordCodec &codec, const uchar *record, std::string_view primary) {
  if (!primaries_.empty() && primaries_.back() > primary) in_order_ = false;
  primaries_.emplace_back(primary);
  bytes_ += primary.size() + kRowBytes;
  places_.clear();
  found_.clear();
  codec.each_token(record, [&](const Token &token, uint64_t at) {
    if (!codec.forms().has_length(token)) return;
    const uint32_t number = find_word(codec.forms(), token);
    if (number == kNone) return;
    Word &word = words_[number];
    const auto place = static_cast<uint32_t>(places_.size());
    if (word.first == kNone) {
      found_.push_back(number);
      word.first = place;
    } else {
      places_[word.last].next = place;
    }
    word.last = place;
    places_.push_back({at, kNone});
  });
  end_row();
}

// Makes entries of the places of the row.
void WordBuffer::end_row() {
  const auto row = static_cast<uint32_t>(primaries_.size() - 1);
  const size_t before = values_.size();
  for (const uint32_t number : found_) {
    Word &word = words_[number];
    entries_.push_back({number, row, static_cast<uint32_t>(values_.size())});
    word.entries++;
    uint64_t last = 0;
    for (uint32_t i = word.first; i != kNone; i = places_[i].next) {
      append_varint(&values_, places_[i].at - last);
      last = places_[i].at;
    }
    word.first = kNone;
  }
  bytes_ += values_.size() - before + found_.size() * kEntryBytes;
}

std::string_view WordBuffer::value_of(uint32_t place) const {
  const size_t begin = entries_[place].value_at;
  const size_t end = place + 1 < entries_.size() ? entries_[place + 1].value_at : values_.size();
  return std::string_view(values_).substr(begin, end - begin);
}

// The entries' places by ascending keys.
std::vector<uint32_t> WordBuffer::sorted() const {
  std::vector<uint32_t> numbers(words_.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::sort(numbers.begin(), numbers.end(),
            [&](uint32_t a, uint32_t b) { return *words_[a].form < *words_[b].form; });
  std::vector<uint32_t> begins(words_.size());
  uint32_t begin = 0;
  for (const uint32_t number : numbers) {
    begins[number] = begin;
    begin += words_[number].entries;
  }
  std::vector<uint32_t> order(entries_.size());
  std::vector<uint32_t> ends = begins;
  for (uint32_t place = 0; place < entries_.size(); place++) {
    order[ends[entries_[place].word]++] = place;
  }
  for (size_t number = 0; !in_order_ && number < words_.size(); number++) {
    std::sort(order.begin() + begins[number], order.begin() + ends[number],
              [&](uint32_t a, uint32_t b) {
                return primaries_[entries_[a].row] < primaries_[entries_[b].row];
              });
  }
  return order;
}

void WordBuffer::clear() {
  if (word_bytes_ > bytes_) {
    *this = WordBuffer();
    return;
  }
  entries_.clear();
  primaries_.clear();
  values_.clear();
  for (Word &word : words_) word.entries = 0;
  bytes_ = 0;
  in_order_ = true;
}

}  // namespace shale_sql
