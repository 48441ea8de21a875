// The server's interface of parser plugins, from the side that calls them.

#include "words/parser_plugin.h"

#include "server.h"

namespace shale_sql {

namespace {

// A plugin is called for one text, as by InnoDB.
int run(st_mysql_ftparser *parser, MYSQL_FTPARSER_PARAM *param) {
  if (parser->init != nullptr && parser->init(param) != 0) return 1;
  const int error = parser->parse(param);
  if (parser->deinit != nullptr) parser->deinit(param);
  return error;
}

MYSQL_FTPARSER_PARAM param_of(const WordForms &forms, std::string_view text, void *state) {
  MYSQL_FTPARSER_PARAM param;
  memset(&param, 0, sizeof(param));
  param.mysql_ftparam = state;
  param.cs = forms.charset();
  param.doc = text.data();
  param.length = static_cast<int>(text.size());
  return param;
}

std::string_view text_of(const char *text, int length) {
  return {text, length > 0 ? static_cast<size_t>(length) : 0};
}

// A plugin hands a text, or a part of it, to the engine's own rules.
int split_document(MYSQL_FTPARSER_PARAM *param, const char *text, int length) {
  MYSQL_FTPARSER_BOOLEAN_INFO info = {FT_TOKEN_WORD, 0, 0, 0, 0, ' ', nullptr};
  Tokens tokens(param->cs, text_of(text, length));
  for (Token token; tokens.next(&token);) {
    const int size = static_cast<int>(token.text.size());
    if (param->mysql_add_word(param, token.text.data(), size, &info) != 0) break;
  }
  return 0;
}

int add_document_word(MYSQL_FTPARSER_PARAM *param, const char *word, int length,
                      MYSQL_FTPARSER_BOOLEAN_INFO *) {
  auto *words = static_cast<std::vector<ParsedWord> *>(param->mysql_ftparam);
  const std::string_view text = text_of(word, length);
  words->push_back({std::string(text), chars_of(param->cs, text)});
  return 0;
}

// Makes a tree of the words of a query.
class Builder {
 public:
  Builder() : root_(std::make_unique<QueryNode>(QueryNode::Type::kList)) {
    open_.push_back(root_.get());
  }

  // Not 0: the plugin is to stop.
  int add(std::string_view text, const MYSQL_FTPARSER_BOOLEAN_INFO *info) {
    switch (info != nullptr ? info->type : FT_TOKEN_WORD) {
      case FT_TOKEN_STOPWORD:
        if (phrase_ == nullptr) return 0;
        // fall through
      case FT_TOKEN_WORD: return word(text, info);
      case FT_TOKEN_LEFT_PAREN: return begin(*info);
      case FT_TOKEN_RIGHT_PAREN: return end();
      default: return 0;
    }
  }

  WordSyntax finish(int error, QueryNodePtr *root) {
    if (syntax_ != WordSyntax::kGood) return syntax_;
    if (error != 0 || open_.size() != 1 || phrase_ != nullptr) return WordSyntax::kGood;
    *root = std::move(root_);
    return WordSyntax::kGood;
  }

 private:
  int word(std::string_view text, const MYSQL_FTPARSER_BOOLEAN_INFO *info) {
    if (phrase_ != nullptr) {
      phrase_->leaf.words.emplace_back(text);
      return 0;
    }
    auto leaf = std::make_unique<QueryNode>(QueryNode::Type::kLeaf);
    leaf->leaf.text.assign(text);
    if (info != nullptr && info->trunc != 0) leaf->leaf.kind = WordLeaf::Kind::kBeginning;
    put(info, std::move(leaf));
    return 0;
  }

  int begin(const MYSQL_FTPARSER_BOOLEAN_INFO &info) {
    if (phrase_ != nullptr) return 1;
    if (info.quot != nullptr) {
      auto leaf = std::make_unique<QueryNode>(QueryNode::Type::kLeaf);
      leaf->leaf.kind = WordLeaf::Kind::kPhrase;
      leaf->leaf.is_parsed = true;
      phrase_ = leaf.get();
      put(&info, std::move(leaf));
      return 0;
    }
    if (open_.size() > kDeepestGroup || ++groups_ > kMostGroups) {
      syntax_ = WordSyntax::kTooDeep;
      return 1;
    }
    auto group = std::make_unique<QueryNode>(QueryNode::Type::kGroup);
    QueryNode *inner = group.get();
    put(&info, std::move(group));
    open_.push_back(inner);
    return 0;
  }

  int end() {
    if (phrase_ != nullptr) {
      phrase_ = nullptr;
      return 0;
    }
    if (open_.size() == 1) return 1;
    open_.pop_back();
    return 0;
  }

  void put(const MYSQL_FTPARSER_BOOLEAN_INFO *info, QueryNodePtr node) {
    const Mark mark = info != nullptr ? mark_of(*info) : Mark::kNone;
    if (mark == Mark::kNone) {
      open_.back()->add(std::move(node));
      return;
    }
    auto sign = std::make_unique<QueryNode>(QueryNode::Type::kMark);
    sign->mark = mark;
    QueryNodePtr marked = list_of(std::move(sign));
    marked->add(std::move(node));
    open_.back()->add(std::move(marked));
  }

  static Mark mark_of(const MYSQL_FTPARSER_BOOLEAN_INFO &info) {
    if (info.yesno > 0) return Mark::kExist;
    if (info.yesno < 0) return Mark::kIgnore;
    if (info.weight_adjust > 0) return Mark::kIncrease;
    if (info.weight_adjust < 0) return Mark::kDecrease;
    return info.wasign > 0 ? Mark::kNegate : Mark::kNone;
  }

  QueryNodePtr root_;
  std::vector<QueryNode *> open_;  // the list, and the groups in each other
  QueryNode *phrase_ = nullptr;    // that is open
  unsigned groups_ = 0;
  WordSyntax syntax_ = WordSyntax::kGood;
};

int add_query_word(MYSQL_FTPARSER_PARAM *param, const char *word, int length,
                   MYSQL_FTPARSER_BOOLEAN_INFO *info) {
  return static_cast<Builder *>(param->mysql_ftparam)->add(text_of(word, length), info);
}

// Operators count behind a blank, and before a word, a phrase or a group.
void take_sign(char sign, MYSQL_FTPARSER_BOOLEAN_INFO *info) {
  switch (sign) {
    case '+': info->yesno = 1; break;
    case '-': info->yesno = -1; break;
    case '>': info->weight_adjust++; break;
    case '<': info->weight_adjust--; break;
    case '~': info->wasign = static_cast<char>(info->wasign == 0); break;
    default: break;
  }
}

// The words and signs of a boolean query, for a plugin that hands it to the engine's own rules.
int split_query(MYSQL_FTPARSER_PARAM *param, const char *text, int length) {
  const std::string_view all = text_of(text, length);
  const MYSQL_FTPARSER_BOOLEAN_INFO none = {FT_TOKEN_WORD, 0, 0, 0, 0, ' ', nullptr};
  MYSQL_FTPARSER_BOOLEAN_INFO info = none;
  char quote = '"';
  bool quoted = false;
  const auto give = [&](enum_ft_token_type type, std::string_view word) {
    info.type = type;
    const int error =
        param->mysql_add_word(param, word.data(), static_cast<int>(word.size()), &info);
    info = none;
    info.quot = quoted ? &quote : nullptr;
    return error;
  };
  size_t at = 0;
  char before = ' ';
  while (at < all.size()) {
    const char now = all[at];
    const std::string_view rest = all.substr(at);
    int error = 0;
    bool is_word = false;
    const size_t bytes = char_at(param->cs, rest, &is_word);
    if (is_word) {
      Tokens tokens(param->cs, rest);
      Token token;
      before = 'A';
      if (!tokens.next(&token) || tokens.place_of(token) > bytes + 1) {
        // Of a letter before an apostrophe nothing is left; signs behind it count.
        at += bytes + 1;
        info = none;
        info.quot = quoted ? &quote : nullptr;
        continue;
      }
      at += tokens.place_of(token) + token.text.size();
      info.trunc = static_cast<char>(at < all.size() && all[at] == '*');
      at += static_cast<size_t>(info.trunc);
      // A word that no row can have is one too, as of InnoDB.
      error = give(FT_TOKEN_WORD, token.text);
    } else if (now == '"') {
      at++;
      if (!quoted) info.quot = &quote;
      quoted = !quoted;
      error = give(quoted ? FT_TOKEN_LEFT_PAREN : FT_TOKEN_RIGHT_PAREN, rest.substr(0, 1));
      before = ' ';
    } else if (!quoted && (now == '(' || now == ')')) {
      at++;
      error = give(now == '(' ? FT_TOKEN_LEFT_PAREN : FT_TOKEN_RIGHT_PAREN, rest.substr(0, 1));
      before = ' ';
    } else {
      at += bytes;
      if (!quoted && before == ' ' && strchr("+-<>~", now) != nullptr) {
        take_sign(now, &info);
      } else if (!quoted) {
        info = none;
        before = now;
      }
    }
    if (error != 0) return error;
  }
  // A phrase without its end is one as far as it goes.
  if (!quoted) return 0;
  quoted = false;
  return give(FT_TOKEN_RIGHT_PAREN, all.substr(all.size()));
}

}  // namespace

st_mysql_ftparser *parser_of(const KEY &key) {
  if ((key.flags & HA_USES_PARSER) == 0) return nullptr;
  return static_cast<st_mysql_ftparser *>(plugin_decl(key.parser)->info);
}

std::vector<ParsedWord> parse_document(const WordForms &forms, std::string_view text,
                                       bool phrase) {
  std::vector<ParsedWord> words;
  MYSQL_FTPARSER_PARAM param = param_of(forms, text, &words);
  param.mysql_parse = split_document;
  param.mysql_add_word = add_document_word;
  param.mode = phrase ? MYSQL_FTPARSER_WITH_STOPWORDS : MYSQL_FTPARSER_SIMPLE_MODE;
  // As of InnoDB, a text that the plugin gives up has the words up to there.
  run(forms.parser(), &param);
  return words;
}

WordSyntax parse_query(const WordForms &forms, std::string_view text, bool boolean,
                       QueryNodePtr *root) {
  Builder builder;
  MYSQL_FTPARSER_PARAM param = param_of(forms, text, &builder);
  param.mysql_parse = boolean ? split_query : split_document;
  param.mysql_add_word = add_query_word;
  param.mode = boolean ? MYSQL_FTPARSER_FULL_BOOLEAN_INFO : MYSQL_FTPARSER_SIMPLE_MODE;
  return builder.finish(run(forms.parser(), &param), root);
}

}  // namespace shale_sql
