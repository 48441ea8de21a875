// ALTER TABLE without a copy of the table: what is of the definition only, and building indexes.
//
// New trees are made and filled before the catalog changes, old ones are dropped after it. The one
// write of the catalog is the switch: by the version in it recovery knows which .frm is right.

#include "handler/ha_shale.h"

#include "codec/index_defs.h"
#include "ddl/alter_plan.h"
#include "ddl/altered_keys.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/table_files.h"
#include "engine/trees.h"
#include "load/loader.h"
#include "txn/in_doubt.h"

using namespace shale_sql;

namespace {

// Rows between two looks at whether the statement was killed.
constexpr uint64_t kAsk = 1024;

class AlterContext final : public inplace_alter_handler_ctx {
 public:
  AlterContext(std::string path, AlterPlan plan, TableDef was)
      : path(std::move(path)), plan(std::move(plan)), was(std::move(was)) {}

  std::string path;
  AlterPlan plan;
  std::vector<TreeHandle> trees;  // as plan.added
  uint64_t above = 0;             // the automatic numbers, if the statement sets the next
  TableDef was;
  Constraints constraints;

  AlteredTable altered(THD *thd, const Alter_info *statement) const {
    return {thd, statement, path, &was, &plan.def};
  }
};

std::vector<std::string> names_of_added(const TABLE *altered, const AlterContext &context) {
  const TableDef &def = context.plan.def;
  std::vector<std::string> names;
  for (unsigned number : context.plan.added) {
    const IndexDef *index = index_of(def, altered, number);
    if (index != nullptr) names.push_back(tree_name(def.table_id, index->id));
  }
  return names;
}

// Adds a virtual column to those that are computed, after the ones that it is computed from.
void add_virtual(const TABLE *table, Field *field, std::vector<Field *> *columns) {
  if (field->stored_in_db()) return;
  if (std::find(columns->begin(), columns->end(), field) != columns->end()) return;
  std::vector<my_bitmap_map> words(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map));
  MY_BITMAP from;
  my_bitmap_init(&from, words.data(), table->s->fields);
  field->vcol_info->expr->walk(&Item::register_field_in_bitmap, true, &from);
  for (Field **other = table->vfield; *other != nullptr; other++) {
    if (bitmap_is_set(&from, (*other)->field_index)) add_virtual(table, *other, columns);
  }
  columns->push_back(field);
}

// Reads the rows of a table as the altered table has them, and fills its new indexes.
class Builder {
 public:
  Builder(THD *thd, TABLE *altered, AlterContext *context, shale_tree *primary);

  Error run(ha_rows expected);
  // The index that has two entries of one key; MAX_KEY: none. Its row is in the record.
  unsigned duplicate() const { return duplicate_; }

 private:
  Error scan(ha_rows expected);
  Error add(std::string_view key, std::string_view value);
  Error take(std::string_view key, std::string_view value);
  Error compute();
  Error show_duplicate(size_t place);

  THD *thd_;
  TABLE *altered_;
  shale_tree *tree_;
  const std::vector<unsigned> &numbers_;
  KeyCodec primary_;
  RowCodec rows_;
  std::vector<std::unique_ptr<KeyCodec>> codecs_;
  std::vector<TreeLoader> loaders_;
  // The virtual columns that the new indexes need, in the order in which they are computed.
  std::vector<Field *> computed_;
  unsigned duplicate_ = MAX_KEY;
  std::string key_, value_;
};

Builder::Builder(THD *thd, TABLE *altered, AlterContext *context, shale_tree *primary)
    : thd_(thd),
      altered_(altered),
      tree_(primary),
      numbers_(context->plan.added),
      primary_(altered, altered->s->primary_key, nullptr),
      rows_(altered, &primary_, std::make_shared<const TableDef>(context->plan.def)) {
  size_t memory = sort_memory(thd, numbers_.size());
  for (size_t place = 0; place < numbers_.size(); place++) {
    codecs_.push_back(std::make_unique<KeyCodec>(altered, numbers_[place], &primary_));
    loaders_.emplace_back(context->trees[place].get(), false, memory);
    const KEY &index = altered->key_info[numbers_[place]];
    for (uint part = 0; part < index.user_defined_key_parts; part++) {
      Field *field = altered->field[index.key_part[part].fieldnr - 1];
      add_virtual(altered, field, &computed_);
    }
  }
}

Error Builder::take(std::string_view key, std::string_view value) {
  if (!rows_.unpack(key, value, nullptr, altered_->record[0])) {
    return Error(kErrDamagedRow, "a row of the table is damaged; CHECK TABLE says which");
  }
  return computed_.empty() ? Error() : compute();
}

// TABLE::update_virtual_fields would make warnings of errors, those of the strict mode too. An
// index is written: what could not be written into a row ends the statement.
Error Builder::compute() {
  Query_arena backup;
  thd_->set_n_backup_active_arena(altered_->expr_arena, &backup);
  for (Field *field : computed_) field->vcol_info->expr->save_in_field(field, false);
  thd_->restore_active_arena(altered_->expr_arena, &backup);
  return thd_->is_error() ? HA_ERR_GENERIC : 0;
}

Error Builder::add(std::string_view key, std::string_view value) {
  if (Error error = take(key, value)) return error;
  const uchar *row = altered_->record[0];
  for (size_t place = 0; place < codecs_.size(); place++) {
    bool has_null = false;
    key_.clear();
    value_.clear();
    codecs_[place]->pack_columns(row, &key_, &has_null);
    codecs_[place]->append_primary(key, has_null, &key_);
    codecs_[place]->pack_value(row, key, has_null, &value_);
    if (Error error = loaders_[place].add(key_, value_)) return error;
  }
  return 0;
}

Error Builder::scan(ha_rows expected) {
  shale_scan *begun = nullptr;
  Error error =
      consume_error(shale_scan_new(tree_, nullptr, nullptr, 0, nullptr, 0, false, &begun));
  ScanHandle scan(begun);
  if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
  for (uint64_t count = 1; !error && at_row(begun); count++) {
    if (count % kAsk == 0) {
      if (thd_killed(thd_)) return HA_ERR_ABORTED_BY_USER;
      thd_progress_report(thd_, count, std::max<ha_rows>(expected, count));
    }
    size_t key_len = 0, value_len = 0;
    const char *key = static_cast<const char *>(shale_scan_key(begun, &key_len));
    const void *value = nullptr;
    if ((error = consume_error(shale_scan_value(begun, &value, &value_len)))) break;
    if ((error = add({key, key_len}, {static_cast<const char *>(value), value_len}))) break;
    error = consume_error(move_scan(begun, SHALE_NEXT));
  }
  return error;
}

// Puts the row that is one too many into the record, for the error's text.
Error Builder::show_duplicate(size_t place) {
  const TreeLoader &loader = loaders_[place];
  duplicate_ = numbers_[place];
  std::string_view primary;
  if (!codecs_[place]->primary_of(loader.key(), loader.value(), &primary)) return 0;
  shale_bytes *found = nullptr;
  shale_error *error = shale_get(tree_, nullptr, primary.data(), primary.size(), &found);
  if (error != nullptr) return consume_error(error);
  if (found == nullptr) return 0;
  BytesHandle row(found);
  // Columns of any length are read from the record when the text is made.
  value_ = view_of(row);
  return take(primary, value_);
}

Error Builder::run(ha_rows expected) {
  thd_progress_init(thd_, static_cast<uint>(1 + loaders_.size()));
  Error error = scan(expected);
  for (size_t place = 0; !error && place < loaders_.size(); place++) {
    thd_progress_next_stage(thd_);
    error = loaders_[place].finish(thd_);
    if (error == HA_ERR_FOUND_DUPP_KEY) {
      if (Error other = show_duplicate(place)) error = std::move(other);
    }
  }
  thd_progress_end(thd_);
  return error;
}

}  // namespace

// VARCHARs may become longer: they are stored with their length, whatever its bound is.
bool ha_shale::can_convert_nocopy(const Field &field, const Column_definition &is) const {
  const auto *text = dynamic_cast<const Field_varstring *>(&field);
  return text != nullptr && is.type_handler() == field.type_handler() &&
         is.charset == field.charset() && is.length >= text->field_length &&
         is.char_length >= text->char_length() && !is.compression_method() &&
         !text->compression_method();
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
  AlterPlan plan = plan_alter(table, altered, info, *shared_->def);
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
  if (plan.added.empty()) return HA_ALTER_INPLACE_INSTANT;
  info->unsupported_reason = "an index is built while nothing is written";
  return HA_ALTER_INPLACE_NOCOPY_LOCK;
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

bool ha_shale::prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  AlterPlan plan = plan_alter(table, altered, info, *shared_->def);
  if (plan.refusal != nullptr) {
    my_error(ER_ALTER_OPERATION_NOT_SUPPORTED_REASON, MYF(0), "ALGORITHM=INPLACE", plan.refusal,
             "ALGORITHM=COPY");
    return true;
  }
  if (int error = note(engine().in_doubt.finish_commits())) {
    print_error(tell_server(ha_thd(), error), MYF(0));
    return true;
  }
  auto *context =
      new (ha_thd()->mem_root) AlterContext(shared_->path, std::move(plan), *shared_->def);
  info->handler_ctx = context;
  if (plan_constraints(table, altered, info, context)) return true;
  bool numbered = (info->create_info->used_fields & HA_CREATE_USED_AUTO) != 0;
  if (numbered && table->found_next_number_field != nullptr) {
    if (int error = look_up_above(&context->above)) {
      print_error(tell_server(ha_thd(), error), MYF(0));
      return true;
    }
  }
  const TableDef &def = context->plan.def;
  if (int error = note(create_trees(names_of_added(altered, *context), def.codec, def.dictionary,
                                    &context->trees))) {
    print_error(error, MYF(0));
    return true;
  }
  return false;
}

bool ha_shale::inplace_alter_table(TABLE *altered, Alter_inplace_info *info) {
  auto *context = static_cast<AlterContext *>(info->handler_ctx);
  Builder builder(ha_thd(), altered, context, primary().tree);
  int error = context->plan.added.empty() ? 0 : note(builder.run(stats.records));
  if (error == 0) error = prove(context->constraints.added, context->path, context->plan.def);
  if (error == 0) return false;
  if (ha_thd()->is_error()) {
    // Told already: a value of a virtual column.
  } else if (builder.duplicate() != MAX_KEY) {
    print_keydup_error(altered, &altered->key_info[builder.duplicate()], MYF(0));
  } else if (error == HA_ERR_ABORTED_BY_USER) {
    ha_thd()->send_kill_message();
  } else {
    print_error(error, MYF(0));
  }
  return true;
}

bool ha_shale::commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) {
  auto *own = static_cast<AlterContext *>(info->handler_ctx);
  if (!commit) {
    if (own != nullptr) drop_trees(names_of_added(altered, *own));
    return false;
  }
  // Partitions are altered together or not at all.
  inplace_alter_handler_ctx *alone[] = {own, nullptr};
  inplace_alter_handler_ctx **all =
      info->group_commit_ctx != nullptr ? info->group_commit_ctx : alone;
  const HA_CREATE_INFO *create = info->create_info;
  bool numbered = (create->used_fields & HA_CREATE_USED_AUTO) != 0;
  uint64_t asked = numbered ? std::max<uint64_t>(create->auto_increment_value, 1) : 0;
  // Children may have come since the beginning.
  const AlteredTable altered_table = own->altered(ha_thd(), info->alter_info);
  ForeignKeys::Change change;
  if (engine().catalog.foreign_keys().any() || !own->constraints.added.empty()) {
    if (refuses_to_alter(altered_table, own->constraints)) return true;
    change = change_of(altered_table, own->constraints);
  }
  std::vector<Catalog::Redefined> defs;
  for (auto **one = all; *one != nullptr; one++) {
    auto *context = static_cast<AlterContext *>(*one);
    // Not below a number that is in the table, though its row may be deleted before the next
    // insert. A partition has its own: others may be dropped, or exchanged for a table.
    defs.push_back({context->path, &context->plan.def, std::max(asked, context->above)});
  }
  if (int error = note(engine().catalog.write_all(defs, change))) {
    print_error(error, MYF(0));
    return true;
  }
  info->group_commit_ctx = nullptr;
  std::vector<std::string> dropped;
  for (auto **one = all; *one != nullptr; one++) {
    auto *context = static_cast<AlterContext *>(*one);
    SharedTable::forget(context->path, !numbered);
    // Snapshots of before do not see what was put into new trees.
    if (!context->trees.empty()) SharedTable::note_new_trees(context->path);
    const TableDef &def = context->plan.def;
    for (uint32_t id : context->plan.dropped) dropped.push_back(tree_name(def.table_id, id));
  }
  drop_trees(dropped);
  return false;
}

// Asked by EXCHANGE PARTITION: a table and its rows' forms move together.
bool ha_shale::check_if_incompatible_data(HA_CREATE_INFO *, uint changes) {
  return changes == IS_EQUAL_NO ? COMPATIBLE_DATA_NO : COMPATIBLE_DATA_YES;
}
