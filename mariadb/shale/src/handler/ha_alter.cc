// ALTER TABLE without a copy of the table: what is of the definition only, and building indexes.
//
// New trees are made and filled before the catalog changes, old ones are dropped after it. The one
// write of the catalog is the switch: by the version in it recovery knows which .frm is right.
// Others may write while trees are filled, and then write there too, or tell which rows they change
// (ddl/online.h, ha_online.cc): docs/decisions/0013.

#include "handler/ha_shale.h"

#include "codec/index_defs.h"
#include "ddl/alter_plan.h"
#include "ddl/altered_keys.h"
#include "ddl/online.h"
#include "ddl/options.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "engine/table_files.h"
#include "engine/trees.h"
#include "load/index_filler.h"
#include "txn/in_doubt.h"
#include "words/parser_plugin.h"
#include "words/stopword_table.h"
#include "words/word_codec.h"

using namespace shale_sql;

namespace {

// How long others' locks are waited for before it is asked whether the statement was killed.
constexpr unsigned long kAskMillis = 100;
constexpr const char *kOfForeignKey = "a column of a foreign key changes";

class AlterContext final : public inplace_alter_handler_ctx {
 public:
  AlterContext(std::string path, AlterPlan plan, std::shared_ptr<const TableDef> was)
      : path(std::move(path)), plan(std::move(plan)), was(std::move(was)) {}

  std::string path;
  AlterPlan plan;
  std::vector<NewIndex> indexes;          // those of plan.added
  std::shared_ptr<ChangedRows> changed;   // nullptr: writers make the entries, or are held off
  std::unique_ptr<IndexFiller> filler;
  uint64_t above = 0;                     // the automatic numbers, if the statement sets the next
  uint64_t seen_from = 0;  // the new trees show what snapshots show from that count on
  std::shared_ptr<const TableDef> was;
  Constraints constraints;

  AlteredTable altered(THD *thd, const Alter_info *statement) const {
    return {thd, statement, path, was.get(), &plan.def};
  }
  Alteration alteration(THD *thd, TABLE *table, TABLE *altered, Alter_inplace_info *info) const {
    auto is = std::make_shared<const TableDef>(plan.def);
    std::vector<std::shared_ptr<const ManyCodec>> many;
    for (unsigned number : plan.added) {
      many.push_back(nullptr);
      if (!has_many_entries(altered, number)) continue;
      many.back() = std::make_shared<WordCodec>(altered, altered->key_info[number],
                                                index_of(*is, altered, number)->words);
    }
    return {thd, table, altered, info, was, is, plan.rebuild != nullptr, plan.added, many};
  }
};

// Makes the trees, once those have ended who have written to the table: transactions that are
// prepared, and have lost their connection and with it the metadata lock.
Error begin_indexes(THD *thd, TABLE *altered, const shale_tree *source, bool builds,
                    AlterContext *context) {
  const TableDef &def = context->plan.def;
  std::vector<NewIndex> &indexes = context->indexes;
  std::vector<std::string> names;
  for (unsigned number : context->plan.added) {
    const uint32_t id =
        number == MAX_KEY ? def.indexes[0].id : index_of(def, altered, number)->id;
    indexes.push_back({number, tree_name(def.table_id, id), nullptr, nullptr});
    names.push_back(indexes.back().name);
  }
  if (names.empty()) return 0;
  Error error = ha_shale::wait_for_writers(thd, source);
  if (error) {
    indexes.clear();
    return error;
  }
  for (size_t i = 0; builds && !error && i < indexes.size(); i++) {
    BuildHandle build;
    TreeHandle tree;
    error = begin_build(source, names[i], def.codec, def.dictionary, kAskMillis, &build, &tree);
    if (error) break;
    indexes[i].build = std::make_shared<IndexBuild>(names[i], std::move(build), std::move(tree));
  }
  if (builds || error) return error;
  std::vector<TreeHandle> made;
  if ((error = create_trees(names, def.codec, def.dictionary, &made))) {
    indexes.clear();
    return error;
  }
  for (size_t i = 0; i < made.size(); i++) indexes[i].tree = std::move(made[i]);
  return ChangedRows::begin(source, names[0] + ".changed", &context->changed);
}

// The catalog has the new trees. Snapshots of before do not see what was put into them.
void note_indexes_there(AlterContext *context) {
  bool all_built = true;
  for (const NewIndex &index : context->indexes) {
    if (index.build != nullptr) index.build->keep();
    all_built = all_built && index.build != nullptr;
  }
  if (context->indexes.empty()) return;
  const uint64_t from = all_built ? context->seen_from : SharedTable::next_tree_epoch();
  SharedTable::note_new_trees(context->path, from);
}

const char *word_of(enum_sql_command command) {
  switch (command) {
    case SQLCOM_FLUSH: return "FLUSH";
    case SQLCOM_TRUNCATE: return "TRUNCATE";
    case SQLCOM_DROP_TABLE:
    case SQLCOM_DROP_DB: return "DROP";
    default: return "ALTER";
  }
}

}  // namespace

// Waits until nobody who has written to the tree is still under way; the error is told.
Error ha_shale::wait_for_writers(THD *thd, const shale_tree *tree) {
  const unsigned long most = settings::definition_wait_millis(thd);
  for (unsigned long waited = 0;; waited += kAskMillis) {
    const unsigned long asks = std::min(kAskMillis, most);
    Error error = shale_sql::consume_error(shale_tree_wait_for_writers(tree, asks));
    if (error != HA_ERR_LOCK_WAIT_TIMEOUT) return error;
    if (thd_killed(thd)) return HA_ERR_ABORTED_BY_USER;
    if (waited + kAskMillis >= most) {
      const std::string &text = error.text();
      const size_t from = std::min(text.find("transaction "), text.size());
      my_printf_error(ER_LOCK_WAIT_TIMEOUT,
                      "Lock wait timeout exceeded; %s TABLE waits for those who have written to "
                      "the table: %s; is it a prepared one, as XA RECOVER lists them?",
                      MYF(0), word_of(thd->lex->sql_command),
                      text.substr(from, text.find(';', from) - from).c_str());
      return error;
    }
  }
}

// VARCHARs may become longer: they are stored with their length, whatever its bound is. Texts may
// get another collation, or go from utf8mb3 to utf8mb4, where their bytes are the same: plan_alter
// builds the indexes anew in which they are.
bool ha_shale::can_convert_nocopy(const Field &field, const Column_definition &is) const {
  if (is.type_handler() != field.type_handler()) return false;
  if (is.compression_method() || field.compression_method()) return false;
  const bool same_charset = is.charset == field.charset();
  if (!same_charset && !Charset(field.charset()).encoding_allows_reinterpret_as(is.charset)) {
    return false;
  }
  if (dynamic_cast<const Field_varstring *>(&field) != nullptr) {
    return is.length >= field.field_length && is.char_length >= field.char_length();
  }
  if (same_charset) return false;
  if (dynamic_cast<const Field_blob *>(&field) != nullptr) {
    return is.pack_length == field.pack_length();
  }
  return dynamic_cast<const Field_string *>(&field) != nullptr && is.length == field.field_length;
}

// Whether columns get another character set or collation.
static bool changes_charset(Alter_info *info) {
  List_iterator_fast<Create_field> all(info->create_list);
  while (const Create_field *is = all++) {
    if (is->field != nullptr && is->charset != is->field->charset()) return true;
  }
  return false;
}

// Whole columns that become longer are the same in keys; plan_alter has the last word.
Compare_keys ha_shale::compare_key_parts(const Field &old_field,
                                         const Column_definition &new_field,
                                         const KEY_PART_INFO &old_part,
                                         const KEY_PART_INFO &new_part) const {
  if (!old_field.is_equal(new_field) && !can_convert_nocopy(old_field, new_field)) {
    return Compare_keys::NotEqual;
  }
  if (old_part.length == new_part.length) return Compare_keys::Equal;
  bool whole = old_part.length == old_field.key_length() && new_part.length == new_field.length;
  return whole ? Compare_keys::EqualButKeyPartLength : Compare_keys::NotEqual;
}

enum_alter_inplace_result ha_shale::check_if_supported_inplace_alter(TABLE *altered,
                                                                     Alter_inplace_info *info) {
  if (shared_->def->discarded) {
    tell_discarded();
    return HA_ALTER_ERROR;
  }
  AlterPlan plan = plan_alter(table, altered, info, shared_->path, *shared_->def);
  if (plan.refusal != nullptr) {
    info->unsupported_reason = plan.refusal;
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  const bool compares =
      (info->handler_flags & ALTER_ADD_FOREIGN_KEY) != 0 && checks_foreign_keys(ha_thd());
  if (compares) {
    info->unsupported_reason = "rows are compared with their parents while nothing is written";
    return HA_ALTER_INPLACE_NOCOPY_LOCK;
  }
  if ((plan.rebuild != nullptr || changes_charset(info->alter_info)) &&
      changes_columns_of_keys({ha_thd(), info->alter_info, shared_->path, shared_->def.get(),
                               &plan.def})) {
    for (const ForeignKeys::Shared &key : engine().catalog.foreign_keys().of_child(shared_->path)) {
      if (takes_null(ha_thd(), info->alter_info, *key)) return HA_ALTER_ERROR;
    }
    info->unsupported_reason = kOfForeignKey;
    return HA_ALTER_INPLACE_NOT_SUPPORTED;
  }
  if (plan.added.empty()) return HA_ALTER_INPLACE_INSTANT;
  const char *alone = why_alone(info, plan);
  const char *why = plan.rebuild != nullptr ? plan.rebuild : "an index is built";
  info->unsupported_reason = alone != nullptr ? alone : why;
  if (plan.rebuild != nullptr) {
    return alone != nullptr ? HA_ALTER_INPLACE_COPY_LOCK : HA_ALTER_INPLACE_COPY_NO_LOCK;
  }
  return alone != nullptr ? HA_ALTER_INPLACE_NOCOPY_LOCK : HA_ALTER_INPLACE_NOCOPY_NO_LOCK;
}

// What foreign keys come and go. True: an error was told.
static bool plan_constraints(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                             AlterContext *context) {
  THD *thd = table->in_use;
  const bool adds = (info->handler_flags & ALTER_ADD_FOREIGN_KEY) != 0;
  if (!adds && !engine().catalog.foreign_keys().any()) return false;
  if (is_partition(context->path) || context->plan.def.temporary) return false;
  const ConstraintTable made = {thd,     Made::kInPlace,     context->path,   context->path,
                                altered, &context->plan.def, info->alter_info, false};
  const int error = constraints_of(made, &context->constraints);
  if (error == 0) {
    return refuses_to_alter(context->altered(thd, info->alter_info), context->constraints);
  }
  if (thd->is_error()) return true;
  // As the server tells it of a table that cannot be made.
  my_error(ER_CANT_CREATE_TABLE, MYF(0), table->s->db.str, table->s->table_name.str, error);
  if (error == HA_ERR_FOUND_DUPP_KEY) {
    my_error(ER_DUP_KEY, MYF(ME_WARNING), table->s->table_name.str, error);
  } else {
    table->file->print_error(error, MYF(ME_WARNING));
  }
  return true;
}

// What becomes of foreign keys at the end. Children may have come since the beginning, gone, or got
// other names. 0, or the number of an error that was told.
static int change_constraints(THD *thd, Alter_info *statement, const AlterContext &context,
                              ForeignKeys::Change *change) {
  const AlteredTable altered = context.altered(thd, statement);
  if (refuses_to_alter(altered, context.constraints)) return HA_ERR_GENERIC;
  const bool changes = context.plan.rebuild != nullptr || changes_charset(statement);
  if (changes && changes_columns_of_keys(altered)) {
    my_error(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON, MYF(0), "ALGORITHM=INPLACE", kOfForeignKey,
             "ALGORITHM=COPY");
    return HA_ERR_GENERIC;
  }
  *change = change_of(altered, context.constraints);
  return 0;
}

bool ha_shale::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  AlterPlan plan = plan_alter(table, altered, info, shared_->path, *shared_->def);
  if (plan.refusal != nullptr) {
    my_error(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON, MYF(0), "ALGORITHM=INPLACE", plan.refusal,
             "ALGORITHM=COPY");
    return true;
  }
  if (int error = note(engine().in_doubt.finish_commits())) {
    print_error(tell_server(ha_thd(), error), MYF(0));
    return true;
  }
  if (int error = note(set_new_rules(ha_thd(), shared_->def->next_index_id, &plan.def))) {
    print_error(tell_server(ha_thd(), error), MYF(0));
    return true;
  }
  auto *context =
      new (ha_thd()->mem_root) AlterContext(shared_->path, std::move(plan), shared_->def);
  info->handler_ctx = context;
  if (plan_constraints(table, altered, info, context)) return true;
  bool numbered = (info->create_info->used_fields & HA_CREATE_USED_AUTO) != 0;
  if (numbered && table->found_next_number_field != nullptr) {
    int error = note(wait_for_writers(ha_thd(), primary().tree));
    if (error == 0) error = look_up_above(&context->above);
    if (error != 0) {
      print_error(tell_server(ha_thd(), error), MYF(0));
      return true;
    }
  }
  const bool builds = writers_make_entries(table, altered, info, context->plan);
  if (int error = note(begin_indexes(ha_thd(), altered, primary().tree, builds, context))) {
    tell_altering(error);
    return true;
  }
  // The server keeps writers off until this returns, and afterwards where there is a reason.
  publish_building(altered, info, context->indexes, context->changed);
  return false;
}

bool ha_shale::inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  auto *context = static_cast<AlterContext *>(info->handler_ctx);
  int error = 0;
  if (!context->indexes.empty()) {
    const Alteration alteration = context->alteration(ha_thd(), table, altered, info);
    context->filler = std::make_unique<IndexFiller>(
        alteration, primary().tree, shared_->counts, &context->indexes, context->changed);
    error = note(context->filler->run(stats.records));
    context->seen_from = context->filler->seen_from();
  }
  if (error == 0 && catch_up_others(altered, info)) return true;
  if (error == 0) error = prove(context->constraints.added, context->path, context->plan.def);
  if (error != 0) tell_filling(altered, context, error);
  return error != 0;
}

// The server fills one partition after the other. What was written to the first ones meanwhile is
// not left to the end, when nobody may write. True: an error was told.
bool ha_shale::catch_up_others(TABLE *altered, Alter_inplace_info *info) {
  inplace_alter_handler_ctx **all = info->group_commit_ctx;
  if (all == nullptr) return false;
  std::vector<IndexFiller *> fillers;
  size_t last = 0;
  for (; all[last] != nullptr; last++) {
    const auto *one = static_cast<AlterContext *>(all[last]);
    if (one->filler != nullptr && one->filler->has_rounds()) fillers.push_back(one->filler.get());
  }
  if (last < 2 || all[last - 1] != info->handler_ctx || fillers.empty()) return false;
  const int error = note(IndexFiller::catch_up(fillers));
  if (error == 0) return false;
  inplace_alter_handler_ctx *failed = info->handler_ctx;
  for (size_t place = 0; place < last; place++) {
    const auto *one = static_cast<AlterContext *>(all[place]);
    if (one->filler != nullptr && one->filler->duplicate() != nullptr) failed = all[place];
  }
  tell_filling(altered, failed, error);
  return true;
}

void ha_shale::tell_filling(TABLE *altered, inplace_alter_handler_ctx *begun, int error) {
  const auto *context = static_cast<AlterContext *>(begun);
  const NewIndex *duplicate = context->filler ? context->filler->duplicate() : nullptr;
  if (duplicate != nullptr && error == HA_ERR_FOUND_DUPP_KEY && !ha_thd()->is_error()) {
    print_keydup_error(altered, &altered->key_info[duplicate->number], MYF(0));
  } else {
    tell_altering(error);
  }
}

// What others have changed since the last look at it. Nobody writes any more.
bool ha_shale::finish_filling(TABLE *altered, inplace_alter_handler_ctx *begun, bool ignores) {
  auto *context = static_cast<AlterContext *>(begun);
  if (context->filler == nullptr || context->changed == nullptr) return false;
  THD *thd = ha_thd();
  const bool aborts = thd->abort_on_warning;
  thd->abort_on_warning = !ignores && thd->is_strict_mode();
  int error = note(wait_for_writers(thd, context->filler->source()));
  if (error == 0) error = note(context->filler->finish());
  thd->abort_on_warning = aborts;
  if (error != 0) tell_filling(altered, context, error);
  return error != 0;
}

void ha_shale::tell_altering(int error) {
  tell_server(ha_thd(), error);
  if (ha_thd()->is_error()) return;  // told already: a value of a virtual column
  if (error == HA_ERR_ABORTED_BY_USER) {
    ha_thd()->send_kill_message();
  } else {
    print_error(error, MYF(0));
  }
}

// Those who write now hold on to trees of a build as long as they need them.
void ha_shale::undo_alter(inplace_alter_handler_ctx *begun) {
  auto *context = static_cast<AlterContext *>(begun);
  if (context == nullptr) return;
  shared_->building.withdraw();
  context->filler.reset();
  context->changed.reset();
  std::vector<std::string> names;
  for (const NewIndex &index : context->indexes) {
    if (index.build == nullptr) names.push_back(index.name);
  }
  context->indexes.clear();
  if (!names.empty()) drop_trees(names);
}

bool ha_shale::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) {
  auto *own = static_cast<AlterContext *>(info->handler_ctx);
  if (!commit) {
    undo_alter(own);
    return false;
  }
  // Partitions are altered together or not at all.
  inplace_alter_handler_ctx *alone[] = {own, nullptr};
  inplace_alter_handler_ctx **all =
      info->group_commit_ctx != nullptr ? info->group_commit_ctx : alone;
  const HA_CREATE_INFO *create = info->create_info;
  bool numbered = (create->used_fields & HA_CREATE_USED_AUTO) != 0;
  uint64_t asked = numbered ? std::max<uint64_t>(create->auto_increment_value, 1) : 0;
  for (auto **one = all; *one != nullptr; one++) {
    if (finish_filling(altered, *one, info->ignore)) return true;
    for (const NewIndex &index : static_cast<AlterContext *>(*one)->indexes) {
      if (index.build == nullptr || !index.build->lacks_geometry()) continue;
      my_error(ER_CANT_CREATE_GEOMETRY_OBJECT, MYF(0));
      return true;
    }
  }
  std::vector<Catalog::Redefined> defs;
  for (auto **one = all; *one != nullptr; one++) {
    auto *context = static_cast<AlterContext *>(*one);
    // Not below a number that is in the table, though its row may be deleted before the next
    // insert. A partition has its own: others may be dropped, or exchanged for a table.
    defs.push_back({context->path, &context->plan.def, std::max(asked, context->above)});
  }
  const auto change_keys = [&](ForeignKeys::Change *change) -> Error {
    return change_constraints(ha_thd(), info->alter_info, *own, change);
  };
  if (int error = note(engine().catalog.write_all(defs, change_keys))) {
    tell_altering(error);
    return true;
  }
  info->group_commit_ctx = nullptr;
  std::vector<std::string> dropped;
  for (auto **one = all; *one != nullptr; one++) {
    auto *context = static_cast<AlterContext *>(*one);
    SharedTable::forget(context->path, !numbered);
    note_indexes_there(context);
    const TableDef &def = context->plan.def;
    for (uint32_t id : context->plan.dropped) dropped.push_back(tree_name(def.table_id, id));
    if (context->changed != nullptr) dropped.push_back(context->changed->name());
    context->filler.reset();
  }
  drop_trees(dropped);
  return false;
}

namespace {

bool same_name(const KEY &a, const KEY &b) {
  return system_charset_info->strnncoll(a.name.str, a.name.length, b.name.str, b.name.length) == 0;
}

const KEY *primary_of(const TABLE_SHARE *share) {
  return share->primary_key == MAX_KEY ? nullptr : &share->key_info[share->primary_key];
}

// Whether all tables of a statement have their rows in the order of the same key. Without a PRIMARY
// KEY that is the first UNIQUE one, and the server compares keys by names, in any order.
bool have_same_primary(THD *thd, const TABLE *table) {
  const KEY *own = primary_of(table->s);
  for (const TABLE_LIST *one = thd->lex->query_tables; one != nullptr; one = one->next_global) {
    if (one->table == nullptr || one->table == table) continue;
    const KEY *other = primary_of(one->table->s);
    if ((own == nullptr) != (other == nullptr)) return false;
    if (own != nullptr && !same_name(*own, *other)) return false;
  }
  return true;
}

// Whether FULLTEXT indexes have the same parser plugins in all tables of a statement, by names. The
// server does not compare them.
bool have_same_parsers(THD *thd, const TABLE *table) {
  for (const TABLE_LIST *one = thd->lex->query_tables; one != nullptr; one = one->next_global) {
    if (one->table == nullptr || one->table == table) continue;
    for (uint k = 0; k < table->s->keys; k++) {
      for (uint j = 0; j < one->table->s->keys; j++) {
        const KEY &a = table->key_info[k], &b = one->table->key_info[j];
        if (same_name(a, b) && parser_of(a) != parser_of(b)) return false;
      }
    }
  }
  return true;
}

// The partition that EXCHANGE PARTITION names, or that CONVERT TABLE makes; nullptr: there is none.
const char *partition_of(LEX *lex) {
  if (const char *named = lex->alter_info.partition_names.head()) return named;
  if (lex->part_info == nullptr || lex->part_info->partitions.is_empty()) return nullptr;
  return lex->part_info->partitions.head()->partition_name;
}

// What is asked of that partition; `table`: of its table.
TreeOptions options_of_partition(THD *thd, const ha_table_option_struct *table) {
  const char *name = partition_of(thd->lex);
  for (const TABLE_LIST *one = thd->lex->query_tables; one != nullptr; one = one->next_global) {
    if (name == nullptr || one->table == nullptr || one->table->part_info == nullptr) continue;
    return tree_options(one->table, name, tree_options(table));
  }
  return tree_options(table);
}

}  // namespace

// Asked by EXCHANGE PARTITION and CONVERT TABLE: a table and its rows' forms move together, and so
// do its codec and dictionaries, which the .frm file at the other end has to name as well.
bool ha_shale::check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) {
  const TreeOptions own = tree_options(table_share->option_struct);
  const TreeOptions other = options_of_partition(ha_thd(), info->option_struct);
  const bool same = changes != IS_EQUAL_NO && own.codec == other.codec &&
                    own.dictionary == other.dictionary &&
                    have_same_parsers(ha_thd(), table) && have_same_primary(ha_thd(), table);
  return same ? COMPATIBLE_DATA_YES : COMPATIBLE_DATA_NO;
}
