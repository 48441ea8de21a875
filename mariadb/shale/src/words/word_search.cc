// One row after the other is put to the steps of a query. Where rows must have some word, only the
// rows of the rarest one are looked at, and the other lists are searched for them. Equal words have
// one list. Lists wait in the order of the rows that they are at, and only the steps of those that
// have a row are made for it: a long query costs what its words find.
//
// Ranks are InnoDB's: of each word that a row was found by, how often it is there times the square
// of log10(rows of the table / rows that have it); and 1 more or less for > and <, ~.

#include "words/word_search.h"

#include "server.h"

#include "words/parser_plugin.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace shale_sql {

namespace {

// So many words are read by scans that stay open. Each takes kilobytes, and blocks of files.
constexpr size_t kMostOpen = 128;
// How many rows the others keep together.
constexpr size_t kMostAhead = 1 << 19;
// So many counts of words take as much memory as a row.
constexpr size_t kCountsOfRow = 16;
// Work between two looks at whether the statement was killed.
constexpr size_t kAsk = 1024;

// Whether InnoDB does not read a word's list if the set is empty that it would be taken out of.
bool passes_over(const WordQuery &query, const WordStep &step) {
  if (step.what != WordStep::What::kLeaf) return false;
  if (query.leaves[step.leaf].kind == WordLeaf::Kind::kPhrase) return false;
  return step.oper == WordOper::kIgnore || (step.oper == WordOper::kExist && step.narrows);
}

// Whether rows may be in the set after the step that were not before it.
bool adds(const WordStep &step) {
  if (step.oper == WordOper::kExist) return !step.narrows;
  return step.oper != WordOper::kIgnore && step.oper != WordOper::kNegate;
}

// Steps of one kind are made together; a group's ends are made alone.
bool are_alike(const WordStep &a, const WordStep &b) {
  if (a.what != WordStep::What::kLeaf || b.what != WordStep::What::kLeaf) return false;
  const auto kind = [](const WordStep &step) {
    const bool narrows = step.oper == WordOper::kExist || step.oper == WordOper::kIgnore;
    return narrows ? step.oper : WordOper::kNone;
  };
  return kind(a) == kind(b);
}

// What is the same in two leaves with the same rows.
std::string name_of(const WordLeaf &leaf) {
  std::string name = std::to_string(static_cast<int>(leaf.kind)) + ' ' +
                     std::to_string(leaf.distance) + ' ' + leaf.text;
  for (const std::string &word : leaf.words) {
    name += ' ' + std::to_string(word.size()) + ' ' + word;
  }
  return name;
}

float within_one(float rank) { return std::min(1.0F, std::max(-1.0F, rank)); }

// For each word by which the row was found; it ends at 1 and -1.
void change_rank(float by, uint64_t words, float *rank) {
  for (uint64_t i = 0; i < std::min<uint64_t>(words, 2); i++) *rank = within_one(*rank + by);
}

}  // namespace

size_t WordSearch::term_of(const std::string &form) {
  const auto [place, is_new] = term_numbers_.emplace(form, terms_.size());
  if (is_new) {
    terms_.emplace_back();
    terms_.back().form = &place->first;
  }
  return place->second;
}

bool WordSearch::is_killed(size_t work) {
  work_ += work;
  if (work_ < kAsk) return false;
  work_ = 0;
  return reader_.is_killed();
}

Error WordSearch::begin_leaf(const WordLeaf &leaf, size_t *number) {
  const WordForms &forms = *reader_.forms;
  *number = lists_.size();
  std::string form;
  if (leaf.kind == WordLeaf::Kind::kWord) {
    forms.append(leaf.text, &form);
    const size_t term = term_of(form);
    if (terms_[term].list != kNone) {
      *number = terms_[term].list;
      return 0;
    }
    terms_[term].list = *number;
    List &list = lists_.emplace_back();
    list.terms.push_back(term);
    list.is_word = true;
    list.read = 1;
    return 0;
  }
  const auto [other, is_new] = other_lists_.emplace(name_of(leaf), *number);
  *number = other->second;
  if (!is_new) return 0;
  List &list = lists_.emplace_back();
  auto rows = std::make_unique<FoundRows>();
  rows->most = kMostRows - std::min(kept_, kMostRows);
  Error error;
  if (leaf.kind == WordLeaf::Kind::kBeginning) {
    forms.append(leaf.text, &form);
    list.terms.push_back(term_of(form));
    beginnings_.push_back(forms.prefix_of(leaf.text));
    error = find_beginning(reader_, leaf.text, rows.get(), &list.entries);
  } else {
    const PhraseWords words = words_of_phrase(forms, leaf);
    // InnoDB's limit.
    if (words.indexed.size() > 128) return Error(HA_ERR_FTS_TOO_MANY_WORDS_IN_PHRASE);
    for (const std::string &one : words.indexed) list.terms.push_back(term_of(one));
    error = find_phrase(reader_, words, leaf.distance, rows.get(), &list.read);
  }
  list.estimate = rows->rows.size();
  kept_ += rows->rows.size();
  list.rows = std::move(rows);
  return error;
}

// Nothing is read yet.
Error WordSearch::begin_words() {
  const auto is_word = [](const List &list) { return list.is_word; };
  const auto words = std::count_if(lists_.begin(), lists_.end(), is_word);
  const size_t ahead = kMostAhead / (static_cast<size_t>(words) + 1) + 1;
  const auto is_required = [](const List &list) { return list.is_word && list.is_required; };
  size_t required = std::min<size_t>(
      static_cast<size_t>(std::count_if(lists_.begin(), lists_.end(), is_required)), kMostOpen);
  size_t others = kMostOpen - required;
  for (List &list : lists_) {
    if (!list.is_word) continue;
    const std::string &form = *terms_[list.terms[0]].form;
    // The words of a single row take no scan. Those that rows must have come first: by their lists
    // rows are looked for.
    size_t &left = list.is_required ? required : others;
    const bool is_open = left != 0;
    if (is_open) left--;
    if (reader_.of_row != nullptr || is_open) {
      list.rows = std::make_unique<OneWord>(reader_, form);
    } else {
      list.rows = std::make_unique<WordInParts>(reader_, form, ahead);
    }
    if (!list.is_required) continue;
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    if (Error error = estimate_rows(reader_, form, &list.estimate)) return error;
  }
  return 0;
}

// Puts steps of one kind together, and each list's to it.
void WordSearch::begin_steps(const WordQuery &query) {
  // By list: the run in which it was added to the set. Once more makes no difference there, and a
  // text may have a word a million times.
  std::vector<size_t> added(lists_.size(), kNone);
  for (size_t at = 0; at < query.steps.size(); at++) {
    const WordStep &step = query.steps[at];
    if (runs_.empty() || !are_alike(query.steps[at - 1], step)) runs_.push_back({at, at});
    runs_.back().end = at + 1;
    if (step.what != WordStep::What::kLeaf) continue;
    const size_t list = list_of_[step.leaf];
    if (step.oper == WordOper::kNone) {
      if (added[list] == runs_.size()) continue;
      added[list] = runs_.size();
    }
    lists_[list].steps.push_back(at);
  }
}

Error WordSearch::begin(const WordQuery &query) {
  list_of_.resize(query.leaves.size());
  for (size_t leaf = 0; leaf < list_of_.size(); leaf++) {
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    if (Error error = begin_leaf(query.leaves[leaf], &list_of_[leaf])) return error;
  }
  // Without a + no one word is needed, unless it is the only one.
  const bool may_require =
      list_of_.size() == 1 ||
      std::any_of(query.steps.begin(), query.steps.end(),
                  [](const WordStep &step) { return step.oper == WordOper::kExist; });
  if (may_require) {
    const std::vector<bool> required = query.required_leaves();
    for (size_t leaf = 0; leaf < list_of_.size(); leaf++) {
      if (required[leaf]) lists_[list_of_[leaf]].is_required = true;
    }
  }
  begin_steps(query);
  in_doubt_ = has_doubts(query);
  return begin_words();
}

// Whether a word is used twice, once where an empty set has it passed over.
bool WordSearch::has_doubts(const WordQuery &query) const {
  std::vector<size_t> uses(terms_.size());
  for (size_t list : list_of_) {
    for (size_t term : lists_[list].terms) uses[term]++;
  }
  // What is found has been in the set since the last step that adds to it: behind that step the set
  // is never empty, or nothing is found.
  size_t depth = 0;
  bool before_more = false;
  for (const WordStep &step : query.steps) {
    if (step.what == WordStep::What::kBegin) {
      depth++;
      continue;
    }
    if (step.what == WordStep::What::kEnd) depth--;
    if (depth == 0 && before_more && adds(step)) return true;
    if (!passes_over(query, step)) continue;
    if (uses[lists_[list_of_[step.leaf]].terms[0]] < 2) continue;
    if (depth != 0) return true;
    before_more = true;
  }
  return false;
}

// Which lists InnoDB has read: their rows count for ranks.
void WordSearch::count_uses(const WordQuery &query) {
  for (const Run &run : runs_) {
    for (size_t at = run.begin; at < run.end; at++) {
      const WordStep &step = query.steps[at];
      if (step.what != WordStep::What::kLeaf) continue;
      if (in_doubt_ && passes_over(query, step) && at >= run.filled) continue;
      const List &list = lists_[list_of_[step.leaf]];
      for (size_t word = 0; word < list.read; word++) terms_[list.terms[word]].uses++;
      if (!list.terms.empty()) terms_[list.terms[0]].words += list.entries;
    }
  }
}

// `row`: the first that may be; becomes the next that all of these lists have.
Error WordSearch::next_required(const std::vector<size_t> &required, std::string *row,
                                bool *found) {
  for (bool same = false; !same;) {
    same = true;
    for (size_t number : required) {
      if (is_killed(1)) return HA_ERR_ABORTED_BY_USER;
      WordList &rows = *lists_[number].rows;
      if (Error error = rows.seek(*row)) return error;
      *found = !rows.at_end();
      if (!*found) return 0;
      if (rows.primary() == *row) continue;
      row->assign(rows.primary());
      same = false;
      break;
    }
  }
  return 0;
}

bool WordSearch::is_after(size_t a, size_t b) const {
  return lists_[a].rows->primary() > lists_[b].rows->primary();
}

// A list waits until the row that it is at is looked at.
void WordSearch::keep(size_t number) {
  if (lists_[number].rows->at_end()) {
    end_list(&lists_[number]);
    return;
  }
  next_.push_back(number);
  std::push_heap(next_.begin(), next_.end(), [&](size_t a, size_t b) { return is_after(a, b); });
}

size_t WordSearch::take_next() {
  std::pop_heap(next_.begin(), next_.end(), [&](size_t a, size_t b) { return is_after(a, b); });
  const size_t number = next_.back();
  next_.pop_back();
  return number;
}

void WordSearch::end_list(List *list) {
  if (list->is_word && list->rows->is_whole()) {
    Term &term = terms_[list->terms[0]];
    term.rows = list->rows->passed();
    term.is_counted = true;
  }
  list->rows.reset();
}

// Lists to their first row, or to the first at or after `row`.
Error WordSearch::first_of(const std::vector<size_t> &lists, const std::string *row) {
  for (size_t number : lists) {
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    WordList &rows = *lists_[number].rows;
    if (Error error = row == nullptr ? rows.next() : rows.seek(*row)) return error;
    keep(number);
  }
  return 0;
}

Error WordSearch::seek_others(const std::string &row) {
  while (!next_.empty() && lists_[next_.front()].rows->primary() < row) {
    if (is_killed(1)) return HA_ERR_ABORTED_BY_USER;
    const size_t number = take_next();
    if (Error error = lists_[number].rows->seek(row)) return error;
    keep(number);
  }
  return 0;
}

// Which lists have the row, and their steps, in their order.
void WordSearch::match(const std::vector<size_t> &required, std::string_view row) {
  matched_ = required;
  while (!next_.empty() && lists_[next_.front()].rows->primary() == row) {
    matched_.push_back(take_next());
  }
  std::sort(matched_.begin(), matched_.end());
  had_.clear();
  for (size_t number : matched_) {
    const std::vector<size_t> &steps = lists_[number].steps;
    had_.insert(had_.end(), steps.begin(), steps.end());
  }
  std::sort(had_.begin(), had_.end());
}

// What a step does to the set of rows, for one of them.
void WordSearch::apply(const WordStep &step, uint64_t has, float rank,
                       const std::vector<size_t> &terms, State *state) {
  switch (step.oper) {
    case WordOper::kExist: {
      const bool stays = has != 0 && (state->in || !step.narrows);
      if (!stays) {
        state->clear();
        return;
      }
      state->rank = within_one(rank + (state->in ? state->rank : 0));
      state->in = true;
      break;
    }
    case WordOper::kIgnore:
      if (has != 0) state->clear();
      return;
    case WordOper::kNegate:
      if (state->in) change_rank(-1, has, &state->rank);
      break;
    default:
      if (has == 0) return;
      if (!state->in) state->rank = rank;
      state->in = true;
      if (step.oper == WordOper::kDecrease) change_rank(-1, has, &state->rank);
      if (step.oper == WordOper::kIncrease) change_rank(1, has, &state->rank);
  }
  if (has == 0 || !state->in) return;
  state->terms.insert(state->terms.end(), terms.begin(), terms.end());
}

// Of a run of steps that a row does not have all words of, only a + changes the set.
bool WordSearch::evaluate(const WordQuery &query) {
  states_.resize(1);
  states_[0].clear();
  auto had = had_.begin();
  const auto apply_had = [&] {
    const WordStep &step = query.steps[*had++];
    const List &list = lists_[list_of_[step.leaf]];
    apply(step, list.rows->words(), 0, list.terms, &states_.back());
  };
  for (Run &run : runs_) {
    const WordStep &first = query.steps[run.begin];
    if (first.what == WordStep::What::kBegin) {
      states_.emplace_back();
      continue;
    }
    if (first.what == WordStep::What::kEnd) {
      const State inner = std::move(states_.back());
      states_.pop_back();
      apply(first, inner.in ? 1 : 0, inner.rank, inner.terms, &states_.back());
      continue;
    }
    State &state = states_.back();
    const auto here = [&] { return had != had_.end() && *had < run.end; };
    if (first.oper == WordOper::kExist) {
      size_t at = run.begin;
      for (; here() && *had == at; at++) {
        if (state.in) run.filled = std::max(run.filled, at + 1);
        apply_had();
      }
      if (at < run.end) {
        if (state.in) run.filled = std::max(run.filled, at + 1);
        state.clear();
      }
    } else if (first.oper == WordOper::kIgnore) {
      if (state.in) run.filled = std::max(run.filled, here() ? *had + 1 : run.end);
      if (here()) state.clear();
    } else {
      while (here()) apply_had();
    }
    while (here()) ++had;
  }
  return states_.back().in;
}

// The row that was looked at.
void WordSearch::add_found(const std::string &row) {
  State &state = states_.back();
  std::sort(state.terms.begin(), state.terms.end());
  state.terms.erase(std::unique(state.terms.begin(), state.terms.end()), state.terms.end());
  found_.push_back({row, state.rank, {}});
  auto &counts = found_.back().counts;
  counts.reserve(state.terms.size());
  for (size_t term : state.terms) counts.emplace_back(term, 0);
  kept_ += kFoundRow + counts.size() / kCountsOfRow;
  const auto is_before = [](const auto &count, size_t term) { return count.first < term; };
  for (size_t number : matched_) {
    const List &list = lists_[number];
    for (size_t i = 0; i < list.terms.size(); i++) {
      const auto count = std::lower_bound(counts.begin(), counts.end(), list.terms[i], is_before);
      if (count == counts.end() || count->first != list.terms[i] || count->second != 0) continue;
      count->second = list.rows->counts()[i];
    }
  }
}

Error WordSearch::find(const WordQuery &query) {
  std::vector<size_t> required, others;
  for (size_t number = 0; number < lists_.size(); number++) {
    (lists_[number].is_required && !in_doubt_ ? required : others).push_back(number);
  }
  std::stable_sort(required.begin(), required.end(), [&](size_t a, size_t b) {
    return lists_[a].estimate < lists_[b].estimate;
  });
  std::string row;
  for (bool first = true;; first = false) {
    if (required.empty()) {
      if (first) {
        if (Error error = first_of(others, nullptr)) return error;
      }
      if (next_.empty()) return 0;
      row.assign(lists_[next_.front()].rows->primary());
    } else {
      bool found = false;
      Error error = next_required(required, &row, &found);
      if (error || !found) return error;
      if ((error = first ? first_of(others, &row) : seek_others(row))) return error;
    }
    match(required, row);
    if (is_killed(1 + matched_.size() + had_.size() + runs_.size())) return HA_ERR_ABORTED_BY_USER;
    if (kept_ > kMostRows) return Error(HA_ERR_OUT_OF_MEM);
    if (evaluate(query)) add_found(row);
    for (size_t number : matched_) {
      if (required.empty()) {
        if (Error error = lists_[number].rows->next()) return error;
      } else if (lists_[number].is_required) {
        continue;
      }
      keep(number);
    }
    // The lowest key above this one.
    row.push_back('\0');
  }
}

Error WordSearch::count() {
  for (List &list : lists_) {
    if (list.rows != nullptr && list.rows->at_end()) end_list(&list);
  }
  for (Term &term : terms_) {
    if (term.is_counted || term.uses == 0) continue;
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    if (Error error = count_rows(reader_, *term.form, &term.rows)) return error;
    term.is_counted = true;
  }
  return 0;
}

void WordSearch::weigh(Term *term) const {
  const uint64_t with = term->rows * term->uses + term->words;
  if (with == 0) return;
  // A word that all rows have still ranks them. A snapshot may have rows that are gone by now.
  const uint64_t all = std::max<uint64_t>(all_rows_, 1);
  const double idf = with == all ? std::log10(1.0001)
                                 : std::log10(static_cast<double>(all) / static_cast<double>(with));
  term->weight = idf;
}

void WordSearch::rank(std::vector<WordMatch> *matches) const {
  matches->reserve(found_.size());
  for (const Found &found : found_) {
    float rank = found.rank;
    for (const auto &[number, times] : found.counts) {
      const double weight = static_cast<double>(times) * terms_[number].weight;
      rank += static_cast<float>(weight * terms_[number].weight);
    }
    matches->push_back({found.primary, rank});
  }
}

// Adds a word to the query that may be there.
Error WordSearch::add_word(const std::string &form, size_t number,
                           std::map<std::string, size_t> *places) {
  OneWord word(reader_, form);
  for (;;) {
    if (Error error = word.next()) return error;
    if (word.at_end()) break;
    if (kept_ > kMostRows) return Error(HA_ERR_OUT_OF_MEM);
    const auto [place, is_new] = places->emplace(word.primary(), found_.size());
    if (is_new) {
      found_.push_back({place->first, 0, {}});
      kept_ += kFoundRow;
    }
    found_[place->second].counts.emplace_back(number, word.counts()[0]);
  }
  kept_ += word.passed() / kCountsOfRow;
  terms_[number].rows = word.passed();
  terms_[number].is_counted = true;
  return 0;
}

Error WordSearch::expand() {
  const WordForms &forms = *reader_.forms;
  std::set<std::string> words;
  std::map<std::string, size_t> places;
  std::string text;
  std::vector<size_t> begins;
  for (size_t i = 0; i < found_.size(); i++) {
    places.emplace(found_[i].primary, i);
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    bool there = false;
    if (Error error = reader_.text_of(found_[i].primary, &text, &begins, &there)) return error;
    if (!there) continue;
    const auto add = [&](std::string_view word, size_t chars) {
      if (!forms.has_length({word, chars})) return;
      std::string form;
      forms.append(forms.fold(word), &form);
      words.insert(std::move(form));
    };
    if (forms.parser() != nullptr) {
      for (const ParsedWord &word : parse_document(forms, text, false)) add(word.text, word.chars);
      continue;
    }
    Tokens tokens(forms.charset(), text);
    for (Token token; tokens.next(&token);) add(token.text, token.chars);
  }
  for (const Term &term : terms_) words.erase(*term.form);
  for (const std::string &from : beginnings_) {
    std::string to = from;
    words.erase(words.lower_bound(from),
                next_after_prefix(&to) ? words.lower_bound(to) : words.end());
  }
  for (const std::string &form : words) {
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    const size_t number = term_of(form);
    terms_[number].uses = 1;
    if (Error error = add_word(form, number, &places)) return error;
  }
  return 0;
}

Error WordSearch::matches(const WordQuery &query, bool *does) {
  Error error = begin(query);
  if (!error) error = find(query);
  *does = !found_.empty();
  return error;
}

Error WordSearch::run(const WordQuery &query, bool expands, std::vector<WordMatch> *matches) {
  matches->clear();
  Error error = begin(query);
  if (!error) error = find(query);
  if (error) return error;
  count_uses(query);
  if (!found_.empty()) error = count();
  if (!error && !found_.empty() && expands) error = expand();
  if (error) return error;
  for (Term &term : terms_) weigh(&term);
  rank(matches);
  // What an expansion has added is at the end.
  if (!expands) return 0;
  std::sort(matches->begin(), matches->end(),
            [](const WordMatch &a, const WordMatch &b) { return a.primary < b.primary; });
  return 0;
}

}  // namespace shale_sql
