// One row after the other is put to the steps of a query. Where rows must have some word, only the
// rows of the rarest one are looked at, and the other lists are searched for them.
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

void add_term(size_t term, std::vector<size_t> *terms) {
  const auto place = std::lower_bound(terms->begin(), terms->end(), term);
  if (place == terms->end() || *place != term) terms->insert(place, term);
}

// Whether InnoDB does not read a word's list if the set is empty that it would be taken out of.
bool passes_over(const WordQuery &query, const WordStep &step) {
  if (step.what != WordStep::What::kLeaf) return false;
  if (query.leaves[step.leaf].kind == WordLeaf::Kind::kPhrase) return false;
  return step.oper == WordOper::kIgnore || (step.oper == WordOper::kExist && step.narrows);
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
    terms_.back().form = form;
  }
  return place->second;
}

Error WordSearch::begin_leaf(const WordLeaf &leaf, Leaf *begun) {
  const WordForms &forms = *reader_.forms;
  if (leaf.kind == WordLeaf::Kind::kPhrase) {
    const PhraseWords words = words_of_phrase(forms, leaf);
    // InnoDB's limit.
    if (words.indexed.size() > 128) return Error(HA_ERR_FTS_TOO_MANY_WORDS_IN_PHRASE);
    for (const std::string &form : words.indexed) begun->terms.push_back(term_of(form));
    auto rows = std::make_unique<FoundRows>();
    Error error = find_phrase(reader_, words, leaf.distance, rows.get(), &begun->read);
    begun->estimate = rows->rows.size();
    begun->list = std::move(rows);
    return error;
  }
  std::string form;
  forms.append(leaf.text, &form);
  begun->terms.push_back(term_of(form));
  if (leaf.kind == WordLeaf::Kind::kBeginning) {
    beginnings_.push_back(forms.prefix_of(leaf.text));
    auto rows = std::make_unique<FoundRows>();
    Error error = find_beginning(reader_, leaf.text, rows.get(), &begun->entries);
    begun->estimate = rows->rows.size();
    begun->list = std::move(rows);
    return error;
  }
  begun->read = 1;
  auto word = std::make_unique<OneWord>(reader_, form);
  begun->word = word.get();
  begun->list = std::move(word);
  return begun->is_required ? estimate_rows(reader_, form, &begun->estimate) : Error();
}

Error WordSearch::begin(const WordQuery &query) {
  leaves_.resize(query.leaves.size());
  // Without a + no one word is needed, unless it is the only one.
  const bool may_require =
      leaves_.size() == 1 ||
      std::any_of(query.steps.begin(), query.steps.end(),
                  [](const WordStep &step) { return step.oper == WordOper::kExist; });
  for (size_t leaf = 0; leaf < leaves_.size(); leaf++) {
    if (reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    leaves_[leaf].is_required = may_require && query.requires_leaf(leaf);
    if (Error error = begin_leaf(query.leaves[leaf], &leaves_[leaf])) return error;
  }
  in_doubt_ = has_doubts(query);
  filled_.assign(query.steps.size(), false);
  return 0;
}

// Whether a word is used twice, once where an empty set has it passed over.
bool WordSearch::has_doubts(const WordQuery &query) const {
  std::vector<size_t> uses(terms_.size());
  for (const Leaf &leaf : leaves_) {
    for (size_t term : leaf.terms) uses[term]++;
  }
  return std::any_of(query.steps.begin(), query.steps.end(), [&](const WordStep &step) {
    return passes_over(query, step) && uses[leaves_[step.leaf].terms[0]] > 1;
  });
}

// Which lists InnoDB has read: their rows count for ranks.
void WordSearch::count_uses(const WordQuery &query) {
  for (size_t at = 0; at < query.steps.size(); at++) {
    const WordStep &step = query.steps[at];
    if (step.what != WordStep::What::kLeaf) continue;
    if (in_doubt_ && passes_over(query, step) && !filled_[at]) continue;
    const Leaf &leaf = leaves_[step.leaf];
    for (size_t word = 0; word < leaf.read; word++) terms_[leaf.terms[word]].uses++;
    if (!leaf.terms.empty()) terms_[leaf.terms[0]].words += leaf.entries;
  }
}

// `row`: the first that may be; becomes the next that all of these lists have.
Error WordSearch::next_required(const std::vector<Leaf *> &required, std::string *row,
                                bool *found) {
  for (bool same = false; !same;) {
    same = true;
    for (const Leaf *leaf : required) {
      if (Error error = leaf->list->seek(*row)) return error;
      *found = !leaf->list->at_end();
      if (!*found) return 0;
      if (leaf->list->primary() == *row) continue;
      row->assign(leaf->list->primary());
      same = false;
      break;
    }
  }
  return 0;
}

Error WordSearch::next_any(std::string *row, bool *found) {
  *found = false;
  for (const Leaf &leaf : leaves_) {
    if (leaf.list->at_end()) continue;
    if (!*found || leaf.list->primary() < *row) {
      row->assign(leaf.list->primary());
      *found = true;
    }
  }
  return 0;
}

// What a step does to the set of rows, for one of them.
void WordSearch::apply(const WordStep &step, uint64_t has, float rank,
                       const std::vector<size_t> &terms, State *state) {
  switch (step.oper) {
    case WordOper::kExist: {
      const bool stays = has != 0 && (state->in || !step.narrows);
      if (!stays) {
        *state = State();
        return;
      }
      state->rank = within_one(rank + (state->in ? state->rank : 0));
      state->in = true;
      break;
    }
    case WordOper::kIgnore:
      if (has != 0) *state = State();
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
  for (size_t term : terms) add_term(term, &state->terms);
}

bool WordSearch::evaluate(const WordQuery &query, std::string_view row) {
  states_.assign(1, State());
  for (size_t at = 0; at < query.steps.size(); at++) {
    const WordStep &step = query.steps[at];
    if (states_.back().in) filled_[at] = true;
    if (step.what == WordStep::What::kBegin) {
      states_.emplace_back();
      continue;
    }
    if (step.what == WordStep::What::kEnd) {
      const State inner = std::move(states_.back());
      states_.pop_back();
      apply(step, inner.in ? 1 : 0, inner.rank, inner.terms, &states_.back());
      continue;
    }
    const Leaf &leaf = leaves_[step.leaf];
    const bool has = !leaf.list->at_end() && leaf.list->primary() == row;
    apply(step, has ? leaf.list->words() : 0, 0, leaf.terms, &states_.back());
  }
  return states_.back().in;
}

Error WordSearch::find(const WordQuery &query) {
  std::vector<Leaf *> required, others;
  for (Leaf &leaf : leaves_) {
    (leaf.is_required && !in_doubt_ ? required : others).push_back(&leaf);
  }
  std::stable_sort(required.begin(), required.end(),
                   [](const Leaf *a, const Leaf *b) { return a->estimate < b->estimate; });
  if (required.empty()) {
    for (const Leaf &leaf : leaves_) {
      if (Error error = leaf.list->next()) return error;
    }
  }
  std::string row;
  for (uint64_t count = 1;; count++) {
    bool found = false;
    Error error = required.empty() ? next_any(&row, &found) : next_required(required, &row, &found);
    if (error || !found) return error;
    const bool asks = count % 1024 == 0 || leaves_.size() > 1024;
    if (asks && reader_.is_killed()) return HA_ERR_ABORTED_BY_USER;
    if (found_.size() > kMostRows) return Error(HA_ERR_OUT_OF_MEM);
    if (!required.empty()) {
      for (const Leaf *leaf : others) {
        if (Error error = leaf->list->seek(row)) return error;
      }
    }
    if (evaluate(query, row)) {
      const State &state = states_.back();
      found_.push_back({row, state.rank, {}});
      for (size_t term : state.terms) found_.back().counts.emplace_back(term, 0);
      for (const Leaf &leaf : leaves_) {
        if (leaf.list->at_end() || leaf.list->primary() != row) continue;
        for (size_t i = 0; i < leaf.terms.size(); i++) {
          for (auto &[term, times] : found_.back().counts) {
            if (term == leaf.terms[i] && times == 0) times = leaf.list->counts()[i];
          }
        }
      }
    }
    if (required.empty()) {
      for (const Leaf &leaf : leaves_) {
        if (leaf.list->at_end() || leaf.list->primary() != row) continue;
        if (Error error = leaf.list->next()) return error;
      }
    } else {
      // The lowest key above this one.
      row.push_back('\0');
    }
  }
}

Error WordSearch::count() {
  for (const Leaf &leaf : leaves_) {
    if (leaf.word == nullptr || !leaf.word->is_whole()) continue;
    Term &term = terms_[leaf.terms[0]];
    term.rows = leaf.word->passed();
    term.is_counted = true;
  }
  for (Term &term : terms_) {
    if (term.is_counted || term.uses == 0) continue;
    if (Error error = count_rows(reader_, term.form, &term.rows)) return error;
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
    if (found_.size() > kMostRows) return Error(HA_ERR_OUT_OF_MEM);
    const auto [place, is_new] = places->emplace(word.primary(), found_.size());
    if (is_new) found_.push_back({place->first, 0, {}});
    found_[place->second].counts.emplace_back(number, word.counts()[0]);
  }
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
  for (const Term &term : terms_) words.erase(term.form);
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
