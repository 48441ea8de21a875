// Answers a query of words: which rows match, and their ranks.
#pragma once

#include "engine/errors.h"
#include "words/word_list.h"
#include "words/word_query.h"

#include <map>
#include <string>
#include <vector>

namespace shale_sql {

struct WordMatch {
  std::string primary;
  float rank = 0;
};

class WordSearch {
 public:
  // `rows`: of the table.
  WordSearch(const WordReader &reader, uint64_t rows) : reader_(reader), all_rows_(rows) {}

  // The matches in the order of their primary keys. `expands`, as WITH QUERY EXPANSION: also all
  // rows that share a word with one of them.
  Error run(const WordQuery &query, bool expands, std::vector<WordMatch> *matches);
  // Whether the one row of the reader matches.
  Error matches(const WordQuery &query, bool *does);

 private:
  static constexpr size_t kNone = ~size_t{0};

  // A word of the query, or a beginning, which are one if their texts are: what ranks are made of.
  struct Term {
    const std::string *form = nullptr;  // in term_numbers_
    bool is_counted = false;
    uint64_t rows = 0;          // that have the word
    uint64_t uses = 0;          // of it in the query: each counts its rows anew, as InnoDB does
    uint64_t words = 0;         // in rows, that begin with it, of all such uses
    double weight = 0;
    size_t list = kNone;        // of the word
  };
  // The rows of all leaves that are the same.
  struct List {
    std::unique_ptr<WordList> rows;  // none: its end was reached
    std::vector<size_t> terms;       // of its counts
    std::vector<size_t> steps;       // by which it changes the set
    bool is_word = false;            // a single one
    bool is_required = false;
    uint64_t estimate = 0;
    size_t read = 0;       // of these words InnoDB reads the first so many
    uint64_t entries = 0;  // of a beginning
  };
  // Steps side by side that are of one kind, from `begin` to before `end`.
  struct Run {
    size_t begin, end;
    size_t filled = 0;  // to before this one the set had a row before some step
  };
  // A row in a set.
  struct State {
    bool in = false;
    float rank = 0;
    std::vector<size_t> terms;  // that it was found by

    void clear() {
      in = false;
      rank = 0;
      terms.clear();
    }
  };
  struct Found {
    std::string primary;
    float rank;
    std::vector<std::pair<size_t, uint64_t>> counts;  // by term
  };

  Error begin(const WordQuery &query);
  Error begin_leaf(const WordLeaf &leaf, size_t *number);
  Error begin_words();
  void begin_steps(const WordQuery &query);
  size_t term_of(const std::string &form);
  bool has_doubts(const WordQuery &query) const;
  void count_uses(const WordQuery &query);
  // Whether the statement was killed; `work`: since the last question.
  bool is_killed(size_t work);
  Error find(const WordQuery &query);
  Error next_required(const std::vector<size_t> &required, std::string *row, bool *found);
  Error first_of(const std::vector<size_t> &lists, const std::string *row);
  Error seek_others(const std::string &row);
  void match(const std::vector<size_t> &required, std::string_view row);
  bool is_after(size_t a, size_t b) const;
  void keep(size_t number);
  size_t take_next();
  bool evaluate(const WordQuery &query);
  // `has`: by how many words the row was found, 0: not at all.
  void apply(const WordStep &step, uint64_t has, float rank, const std::vector<size_t> &terms,
             State *state);
  void add_found(const std::string &row);
  void end_list(List *list);
  Error count();
  void weigh(Term *term) const;
  Error expand();
  Error add_word(const std::string &form, size_t number,
                 std::map<std::string, size_t> *places);
  void rank(std::vector<WordMatch> *matches) const;

  const WordReader &reader_;
  const uint64_t all_rows_;
  std::vector<Term> terms_;
  std::map<std::string, size_t> term_numbers_;
  std::vector<std::string> beginnings_;  // what the forms of their words begin with
  std::vector<List> lists_;
  std::vector<size_t> list_of_;                 // by leaf
  std::map<std::string, size_t> other_lists_;   // those of phrases and beginnings
  std::vector<Run> runs_;
  std::vector<size_t> next_;     // a heap of lists, the one with the lowest row is its first
  std::vector<size_t> matched_;  // lists that have the row that is looked at
  std::vector<size_t> had_;      // their steps
  std::vector<State> states_;
  // A word of the query counts once more if a later use of it finds an empty set.
  bool in_doubt_ = false;
  size_t work_ = 0;
  size_t kept_ = 0;  // rows in memory, of kMostRows
  std::vector<Found> found_;
};

}  // namespace shale_sql
