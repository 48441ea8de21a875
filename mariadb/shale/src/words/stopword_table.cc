// The table is opened by the server's definition, and its rows are read as they are committed. Who
// sets the variable holds a metadata lock on it for that long only.

#include "words/stopword_table.h"

#include "server.h"

#include "codec/row_codec.h"
#include "engine/engine.h"
#include "engine/handles.h"
#include "engine/settings.h"
#include "engine/table_files.h"
#include "engine/trees.h"
#include "tables/constraint_text.h"
#include "words/tokens.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace shale_sql {

namespace {

// A definition in the catalog has all words.
constexpr size_t kMostBytes = 1 << 20;

// An open table of stop words.
class StopwordTable {
 public:
  StopwordTable(THD *thd, const std::string &name)
      : thd_(thd), before_(thd->mdl_context.mdl_savepoint()) {
    const size_t slash = name.find('/');
    if (slash == 0 || slash == std::string::npos || slash + 1 == name.size()) return;
    // What is not there is no error of the statement.
    Dummy_error_handler quiet;
    thd->push_internal_handler(&quiet);
    open("./" + name);
    thd->pop_internal_handler();
  }
  StopwordTable(const StopwordTable &) = delete;
  StopwordTable &operator=(const StopwordTable &) = delete;
  ~StopwordTable() {
    if (is_open_) closefrm(&table_);
    if (share_ != nullptr) tdc_release_share(share_);
    thd_->mdl_context.rollback_to_savepoint(before_);
  }

  // The first column has to be `value`, a VARCHAR, as InnoDB asks it.
  bool is_good() const {
    if (!is_open_) return false;
    const Field *field = table_.field[0];
    return strcmp(field->field_name.str, "value") == 0 && field->type() == MYSQL_TYPE_VARCHAR &&
           field->stored_in_db() && !def_->discarded;
  }
  // The lock on it was not to be had: who knows what it is?
  bool is_locked_out() const { return is_locked_out_; }
  Error read(WordRules *rules);

 private:
  void open(const std::string &path);

  THD *const thd_;
  const MDL_savepoint before_;
  std::string database_, name_;
  TABLE_LIST list_;
  TABLE_SHARE *share_ = nullptr;
  TABLE table_;
  bool is_open_ = false, is_locked_out_ = false;
  std::shared_ptr<const TableDef> def_;
};

void StopwordTable::open(const std::string &path) {
  names_of(path, &database_, &name_);
  const LEX_CSTRING db = {database_.c_str(), database_.size()};
  const LEX_CSTRING name = {name_.c_str(), name_.size()};
  list_.init_one_table(&db, &name, nullptr, TL_READ);
  MDL_REQUEST_INIT(&list_.mdl_request, MDL_key::TABLE, database_.c_str(), name_.c_str(),
                   MDL_SHARED_READ, MDL_TRANSACTION);
  is_locked_out_ =
      thd_->mdl_context.acquire_lock(&list_.mdl_request, thd_->variables.lock_wait_timeout);
  if (is_locked_out_) return;
  TableDef def;
  if (engine().catalog.read(path, &def)) return;
  def_ = std::make_shared<const TableDef>(std::move(def));
  share_ = tdc_acquire_share(thd_, &list_, GTS_TABLE);
  // No handler is made: rows are read here.
  is_open_ = share_ != nullptr && share_->db_type() == engine().hton &&
             open_table_from_share(thd_, share_, &share_->table_name, 0, EXTRA_RECORD, 0, &table_,
                                   false) == OPEN_FRM_OK;
}

Error StopwordTable::read(WordRules *rules) {
  table_.in_use = thd_;
  table_.use_all_columns();
  const KeyCodec primary(&table_, table_.s->primary_key, nullptr);
  const RowCodec rows(&table_, &primary, def_);
  TreeHandle tree;
  const std::string name = tree_name(def_->table_id, def_->indexes[0].id);
  if (Error error = open_tree(engine().db, name, &tree)) return error;
  shale_scan *begun = nullptr;
  Error error =
      consume_error(shale_scan_new(tree.get(), nullptr, nullptr, 0, nullptr, 0, false, &begun));
  const ScanHandle scan(begun);
  if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
  Field *field = table_.field[0];
  CHARSET_INFO *charset = field->charset();
  std::vector<std::string> &words = rules->own_stopwords;
  String buffer;
  for (size_t all = 0; !error && at_row(begun);) {
    size_t key_bytes = 0, bytes = 0;
    const char *key = static_cast<const char *>(shale_scan_key(begun, &key_bytes));
    const void *value = nullptr;
    if ((error = consume_error(shale_scan_value(begun, &value, &bytes)))) break;
    if (!rows.unpack({key, key_bytes}, {static_cast<const char *>(value), bytes}, nullptr,
                     table_.record[0])) {
      return Error(kErrDamagedRow, "a row of a table of stop words is damaged");
    }
    const bool is_past = table_.versioned() && !table_.vers_end_field()->is_max();
    if (!is_past && !field->is_null()) {
      const String *word = field->val_str(&buffer, &buffer);
      words.emplace_back(word->ptr(), word->length());
      all += word->length();
      if (all > kMostBytes) return Error(kErrEngine, "more than 1 MiB of stop words");
    }
    error = consume_error(move_scan(begun, SHALE_NEXT));
  }
  std::sort(words.begin(), words.end(), [&](const std::string &a, const std::string &b) {
    return compare_stopwords(charset, a, b) < 0;
  });
  rules->stopword_collation = charset->number;
  return error;
}

int check_stopword_table(THD *thd, st_mysql_sys_var *, void *save, st_mysql_value *value) {
  char buffer[STRING_BUFFER_USUAL_SIZE];
  int length = sizeof(buffer);
  const char *given = value->val_str(value, buffer, &length);
  if (given != nullptr) {
    if (!StopwordTable(thd, std::string(given, static_cast<size_t>(length))).is_good()) return 1;
    given = thd_strmake(thd, given, static_cast<size_t>(length));
  }
  *static_cast<const char **>(save) = given;
  return 0;
}

char *server_table;

MYSQL_THDVAR_STR(ft_user_stopword_table, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_MEMALLOC,
                 "Table of SHALE, database/table, whose first column `value` has the words that "
                 "FULLTEXT indexes that are made leave out",
                 check_stopword_table, nullptr, nullptr);
MYSQL_SYSVAR_STR(ft_server_stopword_table, server_table, PLUGIN_VAR_OPCMDARG | PLUGIN_VAR_MEMALLOC,
                 "The same for sessions that name no shale_ft_user_stopword_table",
                 check_stopword_table, nullptr, nullptr);

std::string table_of_session(THD *thd) {
  if (const char *name = THDVAR(thd, ft_user_stopword_table)) return name;
  mysql_mutex_lock(&LOCK_global_system_variables);
  const std::string name = server_table == nullptr ? "" : server_table;
  mysql_mutex_unlock(&LOCK_global_system_variables);
  return name;
}

}  // namespace

Error rules_for_new_index(THD *thd, WordRules *rules) {
  *rules = settings::word_rules(thd);
  const std::string name = rules->stopwords ? table_of_session(thd) : std::string();
  if (name.empty()) return 0;
  StopwordTable table(thd, name);
  if (table.is_locked_out()) {
    return thd_killed(thd) ? HA_ERR_ABORTED_BY_USER : HA_ERR_LOCK_WAIT_TIMEOUT;
  }
  return table.is_good() ? table.read(rules) : Error();
}

Error set_new_rules(THD *thd, uint32_t first, TableDef *def) {
  const auto is_new = [&](const IndexDef &index) { return index.has_words && index.id >= first; };
  if (std::none_of(def->indexes.begin(), def->indexes.end(), is_new)) return 0;
  WordRules rules;
  if (Error error = rules_for_new_index(thd, &rules)) return error;
  for (IndexDef &index : def->indexes) {
    if (is_new(index)) index.words = rules;
  }
  return 0;
}

st_mysql_sys_var *user_stopword_table_variable() { return MYSQL_SYSVAR(ft_user_stopword_table); }
st_mysql_sys_var *server_stopword_table_variable() {
  return MYSQL_SYSVAR(ft_server_stopword_table);
}

}  // namespace shale_sql
