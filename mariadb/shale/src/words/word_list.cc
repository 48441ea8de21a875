// Reading the lists of an index of words.

#include "words/word_list.h"

#include "server.h"

#include "words/beginnings.h"
#include "words/parser_plugin.h"
#include "words/word_codec.h"

#include <algorithm>
#include <unordered_map>

namespace shale_sql {

namespace {

// Rows between two looks at whether the statement was killed.
constexpr uint64_t kAsk = 1024;
// So many steps cost less than a search.
constexpr unsigned kSteps = 8;
// Up to so many entries are counted one by one.
constexpr uint64_t kCounted = 20000;

std::string end_of(std::string form) {
  if (!next_after_prefix(&form)) form.clear();
  return form;
}

Error begin_list(const WordReader &reader, Cursor *cursor, const std::string &from) {
  const std::string to = end_of(from);
  if (reader.newest) return cursor->begin_newest(reader.txn, reader.tree, from, !to.empty(), to);
  return cursor->begin(reader.txn, reader.tree, SHALE_LOCK_NONE, from, !to.empty(), to, true,
                       false);
}

ManyEntries::const_iterator find_entry(const ManyEntries &entries, std::string_view key) {
  const auto is_before = [](const ManyEntry &entry, std::string_view of) { return entry.key < of; };
  return std::lower_bound(entries.begin(), entries.end(), key, is_before);
}

// Those of the one row whose words begin with it.
Error find_beginning_in_row(const WordReader &reader, std::string_view from, Beginnings *beginnings,
                            FoundRows *found, uint64_t *entries) {
  *entries = 0;
  uint64_t first = 0;
  for (auto entry = find_entry(*reader.of_row, from);
       entry != reader.of_row->end() && entry->key.compare(0, from.size(), from) == 0; ++entry) {
    bool does = false;
    const std::string_view form = std::string_view(entry->key).substr(
        0, entry->key.size() - std::min(entry->key.size(), reader.row.size()));
    if (Error error = beginnings->holds(form, reader.row, &does)) return error;
    if (does && ++*entries == 1) first = count_places(entry->value);
  }
  if (*entries != 0) found->rows.push_back({std::string(reader.row), {first}, *entries});
  return 0;
}

Error damaged() {
  return Error(kErrDamagedRow, "an entry of a FULLTEXT index is damaged; CHECK TABLE says which");
}

}  // namespace

OneWord::OneWord(const WordReader &reader, std::string form)
    : reader_(reader), form_(std::move(form)) {
  counts_.assign(1, 0);
}

Error OneWord::begin() {
  begun_ = true;
  return reader_.of_row != nullptr ? Error() : begin_list(reader_, &cursor_, form_);
}

Error OneWord::step(bool *found) {
  if (reader_.of_row == nullptr) return cursor_.step(reader_.txn, false, found);
  // There is one entry at most.
  const std::string key = form_ + std::string(reader_.row);
  const auto entry = find_entry(*reader_.of_row, key);
  *found = passed_ == 0 && entry != reader_.of_row->end() && entry->key == key;
  if (!*found) return 0;
  primary_ = reader_.row;
  value_ = entry->value;
  return 0;
}

Error OneWord::pass_outdated(bool *found) {
  while (*found && reader_.is_outdated) {
    bool outdated = false;
    const std::string_view key = cursor_.key();
    if (Error error = reader_.is_outdated(key, key.substr(form_.size()), &outdated)) return error;
    if (!outdated) break;
    if (Error error = step(found)) return error;
  }
  return 0;
}

Error OneWord::take(bool found) {
  if (Error error = pass_outdated(&found)) return error;
  at_end_ = !found;
  if (!found) {
    // Most words of a long query are in few rows or none.
    cursor_.end();
    return 0;
  }
  if (reader_.of_row == nullptr) {
    primary_ = cursor_.key().substr(form_.size());
    value_ = cursor_.value();
  }
  counts_[0] = count_places(value_);
  if (++passed_ % kAsk == 0 && reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
  return 0;
}

Error OneWord::next() {
  if (!begun_) {
    if (Error error = begin()) return error;
  }
  bool found = false;
  if (Error error = step(&found)) return error;
  return take(found);
}

Error OneWord::seek(std::string_view primary) {
  if (!begun_ && primary.empty()) return next();
  if (begun_) {
    for (unsigned step = 0; step < kSteps; step++) {
      if (at_end_ || primary_ >= primary) return 0;
      if (Error error = next()) return error;
    }
    if (at_end_ || primary_ >= primary) return 0;
  } else if (Error error = begin()) {
    return error;
  }
  whole_ = false;
  while (reader_.of_row != nullptr) {
    if (Error error = next()) return error;
    if (at_end_ || primary_ >= primary) return 0;
  }
  key_.assign(form_).append(primary);
  bool found = false;
  if (Error error = cursor_.seek(reader_.txn, key_, &found)) return error;
  return take(found);
}

bool OneWord::places(std::vector<uint64_t> *places) const {
  return read_places(value_, places);
}

WordInParts::WordInParts(const WordReader &reader, const std::string &form, size_t most)
    : reader_(reader), form_(form), most_(most), size_(std::min<size_t>(most, kSteps)) {
  counts_.assign(1, 0);
}

Error WordInParts::read(const std::string &from) {
  begun_ = true;
  at_ = 0;
  part_.clear();
  OneWord word(reader_, form_);
  Error error = word.seek(from);
  while (!error && !word.at_end() && part_.size() < size_) {
    part_.push_back({std::string(word.primary()), word.counts()[0]});
    error = word.next();
  }
  ended_ = word.at_end();
  return error;
}

void WordInParts::take() {
  at_end_ = at_ >= part_.size();
  if (at_end_) return;
  primary_ = part_[at_].primary;
  counts_[0] = part_[at_].count;
  passed_++;
}

Error WordInParts::next() {
  Error error;
  if (!begun_) {
    error = read({});
  } else if (++at_ >= part_.size() && !ended_) {
    const std::string from = part_.back().primary + '\0';
    size_ = std::min(2 * size_, most_);
    error = read(from);
  }
  if (!error) take();
  return error;
}

Error WordInParts::seek(std::string_view primary) {
  if (!begun_ && primary.empty()) return next();
  if (begun_ && (at_end_ || primary_ >= primary)) return 0;
  const auto is_before = [](const Row &row, std::string_view to) { return row.primary < to; };
  const auto from = part_.begin() + static_cast<ptrdiff_t>(at_);
  const auto to = std::lower_bound(from, part_.end(), primary, is_before);
  if (begun_ && (to != part_.end() || ended_)) {
    passed_ += static_cast<uint64_t>(to - from) - 1;
    at_ += static_cast<size_t>(to - from);
  } else {
    whole_ = false;
    size_ = std::min<size_t>(most_, kSteps);
    if (Error error = read(std::string(primary))) return error;
  }
  take();
  return 0;
}

Error estimate_rows(const WordReader &reader, const std::string &form, uint64_t *rows) {
  *rows = 1;
  if (reader.of_row != nullptr) return 0;
  const std::string end = end_of(form);
  return consume_error(shale_tree_estimate(reader.tree, form.data(), form.size(),
                                           end.empty() ? nullptr : end.data(), end.size(), 0, rows,
                                           nullptr, nullptr));
}

Error count_rows(const WordReader &reader, const std::string &form, uint64_t *rows) {
  if (Error error = estimate_rows(reader, form, rows)) return error;
  if (*rows > kCounted) return 0;
  OneWord all(reader, form);
  do {
    if (Error error = all.next()) return error;
  } while (!all.at_end());
  *rows = all.passed();
  return 0;
}

void FoundRows::take() {
  at_end_ = next_ >= rows.size();
  if (at_end_) return;
  primary_ = rows[next_].primary;
  counts_ = rows[next_].counts;
  words_ = rows[next_].words;
  next_++;
}

Error FoundRows::next() {
  take();
  return 0;
}

Error FoundRows::seek(std::string_view primary) {
  if (next_ != 0 && (at_end_ || primary_ >= primary)) return 0;
  const auto from = rows.begin() + static_cast<ptrdiff_t>(next_);
  const auto to = std::lower_bound(
      from, rows.end(), primary,
      [](const Row &row, std::string_view wanted) { return row.primary < wanted; });
  next_ = static_cast<size_t>(to - rows.begin());
  take();
  return 0;
}

Error find_beginning(const WordReader &reader, const std::string &folded, FoundRows *found,
                     uint64_t *entries) {
  const std::string from = reader.forms->prefix_of(folded);
  Beginnings beginnings(reader, folded);
  if (reader.of_row != nullptr) {
    return find_beginning_in_row(reader, from, &beginnings, found, entries);
  }
  Cursor cursor;
  Error error = begin_list(reader, &cursor, from);
  struct Counts {
    uint64_t first, words;
  };
  std::unordered_map<std::string, Counts> rows;
  *entries = 0;
  for (uint64_t passed = 0; !error; ++passed) {
    bool any = false;
    if ((error = cursor.step(reader.txn, false, &any)) || !any) break;
    if (passed % kAsk == 0 && reader.is_killed()) return HA_ERR_ABORTED_BY_USER;
    Reader key(cursor.key());
    if (!reader.forms->skip(&key)) return damaged();
    const std::string_view primary = cursor.key().substr(cursor.key().size() - key.left());
    const std::string_view form = cursor.key().substr(0, cursor.key().size() - primary.size());
    if ((error = beginnings.holds(form, primary, &any))) break;
    if (!any) continue;
    ++*entries;
    if (reader.is_outdated) {
      bool outdated = false;
      if ((error = reader.is_outdated(cursor.key(), primary, &outdated))) break;
      if (outdated) continue;
    }
    // As of InnoDB: of a row with several such words the first is counted.
    if (rows.size() > found->most) return Error(HA_ERR_OUT_OF_MEM);
    const auto [row, is_new] = rows.emplace(primary, Counts{count_places(cursor.value()), 0});
    row->second.words++;
  }
  if (error) return error;
  found->rows.reserve(rows.size());
  for (const auto &[primary, counts] : rows) {
    found->rows.push_back({primary, {counts.first}, counts.words});
  }
  std::sort(found->rows.begin(), found->rows.end(),
            [](const auto &a, const auto &b) { return a.primary < b.primary; });
  return 0;
}

PhraseWords words_of_phrase(const WordForms &forms, const WordLeaf &phrase) {
  PhraseWords words;
  const auto add = [&](const Token &token) {
    std::string form;
    forms.append(token.text, &form);
    if (forms.is_indexed(token)) words.indexed.push_back(form);
    if (!words.indexed.empty()) words.all.push_back(std::move(form));
  };
  if (phrase.is_parsed) {
    for (const std::string &word : phrase.words) add({word, chars_of(forms.charset(), word)});
    return words;
  }
  Tokens tokens(forms.charset(), phrase.text);
  for (Token token; tokens.next(&token);) add(token);
  return words;
}

namespace {

// A row that has all words of a phrase.
class PhraseRow {
 public:
  PhraseRow(const WordForms &forms, const PhraseWords &words, const std::string &text,
            const std::vector<size_t> &begins)
      : forms_(forms), words_(words), text_(text), begins_(begins) {}

  // Whether the words follow each other somewhere, of which the first is at one of these places.
  bool has_words(const std::vector<uint64_t> &places) const {
    if (forms_.parser() != nullptr) return has_parsed_words();
    return std::any_of(places.begin(), places.end(), [&](uint64_t place) {
      // Within the column.
      size_t end = text_.size();
      for (size_t begin : begins_) {
        if (begin > place) end = std::min(end, begin - 1);
      }
      return place < end && follow(static_cast<size_t>(place), end);
    });
  }

  // Whether at most `distance` words are from the first to the last of some places, one of each
  // word.
  bool has_words_within(const std::vector<std::vector<uint64_t>> &places, size_t distance) const {
    std::vector<size_t> at(places.size(), 0);
    // A parser plugin's places are the numbers of words.
    const bool counted = forms_.parser() != nullptr;
    const std::vector<uint64_t> begins =
        counted ? std::vector<uint64_t>() : begins_of_words();
    const auto ordinal = [&](uint64_t place) {
      if (counted) return static_cast<ptrdiff_t>(place);
      return std::lower_bound(begins.begin(), begins.end(), place) - begins.begin();
    };
    for (;;) {
      size_t lowest = 0, highest = 0;
      for (size_t word = 0; word < places.size(); word++) {
        if (places[word][at[word]] < places[lowest][at[lowest]]) lowest = word;
        if (places[word][at[word]] > places[highest][at[highest]]) highest = word;
      }
      const ptrdiff_t from = ordinal(places[lowest][at[lowest]]);
      const ptrdiff_t to = ordinal(places[highest][at[highest]]);
      if (static_cast<size_t>(to - from) < distance) return true;
      if (++at[lowest] == places[lowest].size()) return false;
    }
  }

 private:
  // The same of what a parser plugin makes of the columns, whose places are not those of the text.
  bool has_parsed_words() const {
    for (size_t column = 0; column < begins_.size(); column++) {
      const size_t end = column + 1 < begins_.size() ? begins_[column + 1] - 1 : text_.size();
      const std::string_view text(text_.data() + begins_[column], end - begins_[column]);
      std::vector<std::string> forms;
      for (const ParsedWord &word : parse_document(forms_, text, true)) {
        forms.emplace_back();
        forms_.append(forms_.fold(word.text), &forms.back());
      }
      const auto &wanted = words_.all;
      if (std::search(forms.begin(), forms.end(), wanted.begin(), wanted.end()) != forms.end()) {
        return true;
      }
    }
    return false;
  }

  bool follow(size_t at, size_t end) const {
    Tokens tokens(forms_.charset(), {text_.data() + at, end - at});
    return std::all_of(words_.all.begin(), words_.all.end(), [&](const std::string &wanted) {
      Token token;
      if (!tokens.next(&token)) return false;
      std::string form;
      forms_.append(forms_.fold(token.text), &form);
      return form == wanted;
    });
  }

  // Where all words of the text begin.
  std::vector<uint64_t> begins_of_words() const {
    std::vector<uint64_t> begins;
    Tokens tokens(forms_.charset(), text_);
    for (Token token; tokens.next(&token);) begins.push_back(tokens.place_of(token));
    return begins;
  }

  const WordForms &forms_;
  const PhraseWords &words_;
  const std::string &text_;
  const std::vector<size_t> &begins_;
};

}  // namespace

Error find_phrase(const WordReader &reader, const PhraseWords &words, size_t distance,
                  FoundRows *found, size_t *read) {
  *read = 0;
  if (words.indexed.empty()) return 0;
  std::vector<std::unique_ptr<OneWord>> lists;
  for (const std::string &form : words.indexed) {
    lists.push_back(std::make_unique<OneWord>(reader, form));
    if (Error error = lists.back()->next()) return error;
    ++*read;
    if (lists.back()->at_end()) return 0;
  }
  const bool near = distance != WordLeaf::kExactly && distance > 0;
  std::vector<std::vector<uint64_t>> places(lists.size());
  std::string text, wanted;
  std::vector<size_t> begins;
  for (;;) {
    // All lists to one row.
    bool same = true;
    for (const auto &list : lists) {
      if (list->at_end()) return 0;
      if (list->primary() > wanted) {
        wanted.assign(list->primary());
        same = false;
      }
    }
    for (const auto &list : lists) {
      if (list->primary() == wanted) continue;
      same = false;
      if (Error error = list->seek(wanted)) return error;
      if (list->at_end()) return 0;
    }
    if (!same) continue;
    bool matches = words.all.size() == 1;
    if (!matches) {
      for (size_t word = 0; word < lists.size(); word++) {
        if (!lists[word]->places(&places[word])) return damaged();
      }
      bool there = false;
      if (Error error = reader.text_of(wanted, &text, &begins, &there)) return error;
      const PhraseRow row(*reader.forms, words, text, begins);
      matches = there && (near ? row.has_words_within(places, distance) : row.has_words(places[0]));
    }
    if (matches) {
      if (found->rows.size() > found->most) return Error(HA_ERR_OUT_OF_MEM);
      found->rows.push_back({wanted, {}, 1});
      for (const auto &list : lists) found->rows.back().counts.push_back(list->counts()[0]);
    }
    if (Error error = lists[0]->next()) return error;
  }
}

}  // namespace shale_sql
