// The grammar of queries, and the order in which their parts are looked at. Both are InnoDB's:
// users' queries depend on what it does.

#include "words/word_query.h"

#include "words/parser_plugin.h"

#include <algorithm>
#include <memory>

namespace shale_sql {

namespace {

// How deep a text is parsed to tell whether it is wrong; the limit of groups is looked for then.
constexpr unsigned kDeepestParsed = 200;

enum class Sign : uint8_t { kEnd, kOper, kNumber, kWord, kText };

struct Lexeme {
  Sign sign = Sign::kEnd;
  char oper = 0;
  std::string_view text;
};

// The longest lexeme at each place; what begins none is passed over.
class Lexer {
 public:
  Lexer(std::string_view text, bool boolean) : text_(text), boolean_(boolean) { next(); }

  const Lexeme &now() const { return now_; }
  bool is(char oper) const { return now_.sign == Sign::kOper && now_.oper == oper; }
  void next() {
    while (at_ < text_.size() && !take()) {
    }
    if (!taken_) now_ = Lexeme();
    taken_ = false;
  }

 private:
  bool take() {
    const std::string_view rest = text_.substr(at_);
    const char first = rest[0];
    if (first == '"') {
      const size_t end = rest.find_first_of("\"\n", 1);
      if (end != std::string_view::npos && rest[end] == '"') {
        return give(Sign::kText, rest.substr(0, end + 1));
      }
      at_++;
      return false;
    }
    const size_t blanks = std::min(rest.find_first_not_of("\t "), rest.size());
    const size_t word =
        std::min(rest.find_first_of(boolean_ ? "\" \n*()+-<>~@%" : "\" \n%"), rest.size());
    if (blanks >= word && blanks != 0) {
      at_ += blanks;
      return false;
    }
    const std::string_view opers = boolean_ ? "*()+-<>~@" : "*";
    if (word <= 1 && opers.find(first) != std::string_view::npos) {
      return give(Sign::kOper, rest.substr(0, 1));
    }
    if (word == 0) {
      at_++;
      return false;
    }
    const bool number = boolean_ && rest.substr(0, word).find_first_not_of("0123456789") ==
                                        std::string_view::npos;
    return give(number ? Sign::kNumber : Sign::kWord, rest.substr(0, word));
  }

  bool give(Sign sign, std::string_view text) {
    now_ = {sign, text[0], text};
    at_ += text.size();
    taken_ = true;
    return true;
  }

  const std::string_view text_;
  const bool boolean_;
  size_t at_ = 0;
  bool taken_ = false;
  Lexeme now_;
};

class Parser {
 public:
  Parser(const WordForms &forms, std::string_view text, bool boolean)
      : forms_(forms), lexer_(text, boolean) {}

  WordSyntax run(QueryNodePtr *root) {
    *root = list();
    if (good_ == WordSyntax::kGood && lexer_.now().sign != Sign::kEnd) return WordSyntax::kBad;
    return good_ == WordSyntax::kGood && too_deep_ ? WordSyntax::kTooDeep : good_;
  }

 private:
  QueryNodePtr list() {
    QueryNodePtr all;
    while (good_ == WordSyntax::kGood && lexer_.now().sign != Sign::kEnd && !lexer_.is(')')) {
      bool is_group = false;
      QueryNodePtr one = part(&is_group);
      if (is_group) {
        if (++groups_ > kMostGroups) return fail(WordSyntax::kTooDeep);
        all = list_of(std::move(all));
        all->add(std::move(one));
      } else if (all == nullptr) {
        all = list_of(std::move(one));
      } else {
        all->add(std::move(one));
      }
    }
    return all;
  }

  QueryNodePtr part(bool *is_group) {
    const Mark mark = lexer_.now().sign == Sign::kOper ? mark_of(lexer_.now().oper) : Mark::kNone;
    QueryNodePtr marked;
    if (mark != Mark::kNone) {
      auto node = std::make_unique<QueryNode>(QueryNode::Type::kMark);
      node->mark = mark;
      marked = list_of(std::move(node));
      lexer_.next();
    }
    *is_group = lexer_.is('(');
    QueryNodePtr node = *is_group ? group() : expression();
    if (marked == nullptr) return node;
    marked->add(std::move(node));
    return marked;
  }

  QueryNodePtr group() {
    lexer_.next();
    if (++depth_ > kDeepestParsed) return fail(WordSyntax::kTooDeep);
    too_deep_ = too_deep_ || depth_ > kDeepestGroup;
    QueryNodePtr inner = list();
    depth_--;
    if (!lexer_.is(')')) return fail(WordSyntax::kBad);
    lexer_.next();
    if (inner == nullptr) return nullptr;
    auto node = std::make_unique<QueryNode>(QueryNode::Type::kGroup);
    node->add(std::move(inner));
    return node;
  }

  QueryNodePtr expression() {
    if (lexer_.now().sign == Sign::kText) return phrase();
    while (lexer_.is('*')) lexer_.next();
    const Lexeme found = lexer_.now();
    if (found.sign != Sign::kWord && found.sign != Sign::kNumber) return fail(WordSyntax::kBad);
    lexer_.next();
    QueryNodePtr node = words(found.text);
    if (!lexer_.is('*')) return node;
    lexer_.next();
    if (node != nullptr) {
      const bool is_list = node->type == QueryNode::Type::kList;
      QueryNode *last = is_list ? node->parts.back().get() : node.get();
      last->leaf.kind = WordLeaf::Kind::kBeginning;
    }
    return node;
  }

  // Punctuation may split what is one word to the lexer. Those behind the first are left out if
  // they are short, and all if they are long.
  QueryNodePtr words(std::string_view text) {
    QueryNodePtr first, all;
    Tokens tokens(forms_.charset(), text);
    for (Token token; tokens.next(&token);) {
      const bool any = first != nullptr || all != nullptr;
      if ((any && token.chars < forms_.rules().min_chars) ||
          token.chars > forms_.rules().max_chars) {
        continue;
      }
      auto node = std::make_unique<QueryNode>(QueryNode::Type::kLeaf);
      node->leaf.text.assign(token.text);
      if (!any) {
        first = std::move(node);
        continue;
      }
      if (all == nullptr) all = list_of(std::move(first));
      all->add(std::move(node));
    }
    return all != nullptr ? std::move(all) : std::move(first);
  }

  QueryNodePtr phrase() {
    const std::string_view text = lexer_.now().text;
    lexer_.next();
    QueryNodePtr node;
    if (text.size() > 2) {
      node = std::make_unique<QueryNode>(QueryNode::Type::kLeaf);
      node->leaf.kind = WordLeaf::Kind::kPhrase;
      node->leaf.text.assign(text.substr(1, text.size() - 2));
    }
    if (!lexer_.is('@')) return node;
    lexer_.next();
    if (lexer_.now().sign != Sign::kNumber) return fail(WordSyntax::kBad);
    // More than any text has is as good as the most.
    const std::string digits(lexer_.now().text.substr(0, 18));
    if (node != nullptr) node->leaf.distance = std::stoull(digits);
    lexer_.next();
    return node;
  }

  static Mark mark_of(char oper) {
    switch (oper) {
      case '+': return Mark::kExist;
      case '-': return Mark::kIgnore;
      case '~': return Mark::kNegate;
      case '<': return Mark::kDecrease;
      case '>': return Mark::kIncrease;
      default: return Mark::kNone;
    }
  }

  // The first that is wrong counts.
  QueryNodePtr fail(WordSyntax why) {
    if (good_ == WordSyntax::kGood) good_ = why;
    return nullptr;
  }

  const WordForms &forms_;
  Lexer lexer_;
  unsigned depth_ = 0, groups_ = 0;
  bool too_deep_ = false;
  WordSyntax good_ = WordSyntax::kGood;
};

WordOper oper_of(Mark mark) {
  switch (mark) {
    case Mark::kExist:
    case Mark::kExistLater: return WordOper::kExist;
    case Mark::kIgnore:
    case Mark::kIgnoreLater: return WordOper::kIgnore;
    case Mark::kNegate: return WordOper::kNegate;
    case Mark::kDecrease: return WordOper::kDecrease;
    case Mark::kIncrease: return WordOper::kIncrease;
    default: return WordOper::kNone;
  }
}

// Each level is gone through up to three times: what has no + or -, then what has a +, then a -.
class Steps {
 public:
  explicit Steps(WordQuery *query) : query_(*query) {}

  // `later`: set if something of the list was left for a later pass, which the level above makes.
  void visit(Mark mark, QueryNode *list, bool *later) {
    const bool exists = mark == Mark::kExistLater, ignores = mark == Mark::kIgnoreLater;
    const bool first = !exists && !ignores;
    bool has_later = false, again = false;
    for (QueryNodePtr &part : list->parts) {
      switch (part->type) {
        case QueryNode::Type::kList:
          if (!first) break;
          visit(mark, part.get(), &has_later);
          if (has_later) {
            again = true;
            part->mark = mark;
          }
          break;
        case QueryNode::Type::kMark:
          mark = part->mark;
          if (mark == Mark::kExist) part->mark = Mark::kExistLater;
          if (mark == Mark::kIgnore) part->mark = Mark::kIgnoreLater;
          break;
        default:
          if (part->visited) break;
          if (mark == Mark::kExist || mark == Mark::kIgnore) {
            *later = true;
            break;
          }
          if ((mark == Mark::kExistLater && exists) || (mark == Mark::kIgnoreLater && ignores) ||
              first) {
            part->visited = true;
            look(oper_of(mark), part.get());
          }
      }
    }
    if (!again) return;
    for (QueryNodePtr &part : list->parts) {
      if (part->type == QueryNode::Type::kList && part->mark != Mark::kIgnore) {
        visit(Mark::kExistLater, part.get(), &has_later);
      }
    }
    for (QueryNodePtr &part : list->parts) {
      if (part->type == QueryNode::Type::kList) visit(Mark::kIgnoreLater, part.get(), &has_later);
    }
  }

 private:
  void look(WordOper oper, QueryNode *node) {
    if (node->type == QueryNode::Type::kGroup) {
      const bool narrows = narrows_;
      narrows_ = false;
      query_.steps.push_back({WordStep::What::kBegin, oper, 0, false});
      bool later = false;
      visit(Mark::kNone, node, &later);
      narrows_ = narrows;
      query_.steps.push_back({WordStep::What::kEnd, oper, 0, narrows_});
    } else {
      query_.steps.push_back({WordStep::What::kLeaf, oper, query_.leaves.size(), narrows_});
      query_.leaves.push_back(std::move(node->leaf));
    }
    if (oper == WordOper::kExist) narrows_ = true;
  }

  WordQuery &query_;
  bool narrows_ = false;
};

}  // namespace

std::vector<bool> WordQuery::required_leaves() const {
  // What all rows of a set have, if there may be `any`. Two sets have no leaf in common.
  struct Needs {
    bool any = false;
    std::vector<size_t> leaves;
  };
  std::vector<Needs> sets(1);
  for (const WordStep &step : steps) {
    if (step.what == WordStep::What::kBegin) {
      sets.emplace_back();
      continue;
    }
    Needs part;
    if (step.what == WordStep::What::kEnd) {
      part = std::move(sets.back());
      sets.pop_back();
    } else {
      part = {true, {step.leaf}};
    }
    Needs &set = sets.back();
    switch (step.oper) {
      case WordOper::kNone:
      case WordOper::kDecrease:
      case WordOper::kIncrease:
        if (!part.any) break;
        if (set.any) {
          set.leaves.clear();
        } else {
          set = std::move(part);
        }
        break;
      case WordOper::kExist:
        if (!step.narrows) {
          set = std::move(part);
        } else if (!set.any || !part.any) {
          set = Needs();
        } else {
          if (set.leaves.size() < part.leaves.size()) set.leaves.swap(part.leaves);
          set.leaves.insert(set.leaves.end(), part.leaves.begin(), part.leaves.end());
        }
        break;
      default: break;
    }
  }
  std::vector<bool> required(leaves.size(), !sets.back().any);
  for (size_t leaf : sets.back().leaves) required[leaf] = true;
  return required;
}

WordSyntax parse_words(const WordForms &forms, std::string_view text, bool boolean,
                       WordQuery *query) {
  *query = WordQuery();
  const std::string folded = forms.fold(text);
  QueryNodePtr root;
  const WordSyntax syntax = forms.parser() != nullptr
                                ? parse_query(forms, folded, boolean, &root)
                                : Parser(forms, folded, boolean).run(&root);
  if (syntax != WordSyntax::kGood || root == nullptr) return syntax;
  bool later = false;
  Steps(query).visit(Mark::kNone, root.get(), &later);
  return WordSyntax::kGood;
}

}  // namespace shale_sql
