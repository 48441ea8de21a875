// Which changes of a table can be done in place, and how: by comparing its definitions of before
// and after, column by column and index by index.

#include "ddl/alter_plan.h"

#include "server.h"

#include "codec/index_defs.h"
#include "codec/row_codec.h"
#include "ddl/options.h"
#include "engine/table_files.h"

#include <algorithm>

namespace shale_sql {

namespace {

// Changes that are of the definition only, or of how later rows are written.
constexpr alter_table_operations kInstant =
    ALTER_COLUMN_NAME | ALTER_RENAME_COLUMN | ALTER_COLUMN_DEFAULT | ALTER_COLUMN_ORDER |
    ALTER_COLUMN_STORAGE_TYPE | ALTER_COLUMN_COLUMN_FORMAT | ALTER_COLUMN_OPTION |
    ALTER_COLUMN_NULLABLE | ALTER_COLUMN_TYPE_CHANGE_BY_ENGINE | ALTER_COLUMN_INDEX_LENGTH |
    ALTER_STORED_COLUMN_ORDER | ALTER_VIRTUAL_COLUMN_ORDER | ALTER_VIRTUAL_GCOL_EXPR |
    ALTER_ADD_STORED_BASE_COLUMN | ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_COLUMN |
    ALTER_CHANGE_CREATE_OPTION | ALTER_CONVERT_TO | ALTER_RENAME | ALTER_RENAME_INDEX |
    ALTER_INDEX_ORDER | ALTER_INDEX_IGNORABILITY | ALTER_CHANGE_INDEX_COMMENT |
    ALTER_DROP_CHECK_CONSTRAINT | ALTER_COLUMN_UNVERSIONED | ALTER_PARTITIONED |
    ALTER_ADD_FOREIGN_KEY | ALTER_DROP_FOREIGN_KEY;
constexpr alter_table_operations kIndexes =
    ALTER_ADD_NON_UNIQUE_NON_PRIM_INDEX | ALTER_ADD_UNIQUE_INDEX |
    ALTER_DROP_NON_UNIQUE_NON_PRIM_INDEX | ALTER_DROP_UNIQUE_INDEX;
// Changes for which rows are stored anew.
constexpr alter_table_operations kRebuild =
    ALTER_STORED_COLUMN_TYPE | ALTER_VIRTUAL_COLUMN_TYPE | ALTER_COLUMN_NOT_NULLABLE |
    ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX | ALTER_ADD_STORED_GENERATED_COLUMN |
    ALTER_STORED_GCOL_EXPR | ALTER_COLUMN_VCOL | ALTER_ADD_CHECK_CONSTRAINT |
    ALTER_RECREATE_TABLE | ALTER_DROP_SYSTEM_VERSIONING;

// Values that differ each time they are computed, so that a row is never found again by them.
constexpr uint kRandom = VCOL_NON_DETERMINISTIC | VCOL_NEXTVAL | VCOL_AUTO_INC | VCOL_IMPOSSIBLE;

// Whether anything was told but notes, which nobody else hears of.
class Listener : public Internal_error_handler {
 public:
  bool handle_condition(THD *, uint, const char *, Sql_condition::enum_warning_level *level,
                        const char *, Sql_condition **) override {
    heard_ = heard_ || *level != Sql_condition::WARN_LEVEL_NOTE;
    return true;
  }
  bool heard() const { return heard_; }

 private:
  bool heard_ = false;
};

// Whether a column can hold its default, an expression. Of one that it cannot the server tells at
// the first row that gets it.
bool holds_default(TABLE *table, Field *field) {
  THD *thd = table->in_use;
  Listener listener;
  const enum_check_fields saved = thd->count_cuted_fields;
  Query_arena backup;
  thd->count_cuted_fields = CHECK_FIELD_WARN;
  thd->push_internal_handler(&listener);
  thd->set_n_backup_active_arena(table->expr_arena, &backup);
  field->default_value->expr->save_in_field(field, false);
  thd->restore_active_arena(table->expr_arena, &backup);
  thd->pop_internal_handler();
  thd->count_cuted_fields = saved;
  return !listener.heard();
}

// The server counts rand() among what differs from session to session only.
bool is_random(const Virtual_column_info &value) {
  return (value.flags & kRandom) != 0 || (value.expr->used_tables() & RAND_TABLE_BIT) != 0;
}

// Each row names its form, and every open table knows them all.
constexpr size_t kMostForms = 128;

constexpr size_t kNone = static_cast<size_t>(-1);

constexpr char kOfPartitions[] = "a column changes by which rows are in partitions";

class Planner {
 public:
  Planner(TABLE *table, TABLE *altered, Alter_inplace_info *info, const std::string &path,
          const TableDef &was)
      : table_(table),
        altered_(altered),
        info_(info),
        partition_(partition_name(path)),
        asked_(tree_options(altered, partition_, {was.codec, was.dictionary})),
        was_(was) {
    plan_.def = was;
  }

  AlterPlan run() {
    plan_.refusal = refusal();
    return std::move(plan_);
  }

 private:
  const char *refusal();
  const char *statement_refusal() const;
  void map_columns();
  const char *statement_rebuild() const;
  const char *primary_rebuild() const;
  const char *columns_rebuild();
  const char *new_column_rebuild(Field *field, const ColumnDef &column) const;
  bool tells_partition(const Field *was) const;
  bool is_replaced(const Field *was) const;
  bool tells_otherwise() const;
  bool same_columns(Field **was, Field **is, bool in_order) const;
  bool values_may_change() const;
  const char *collation_rebuild() const;
  const char *rebuild_refusal() const;
  const char *rebuilt_column_refusal(const Field *field, const Create_field *column) const;
  void plan_rebuild();
  bool same_part(const KEY_PART_INFO &was, const KEY_PART_INFO &is) const;
  bool same_key(const KEY &was, const KEY &is) const;
  const KEY *old_key_of(unsigned number) const;
  void plan_indexes();
  const char *words_refusal(const KEY &key) const;

  TABLE *table_, *altered_;
  Alter_inplace_info *info_;
  const std::string partition_;  // its name; empty: it is a table
  const TreeOptions asked_;
  const TableDef &was_;
  AlterPlan plan_;
  std::vector<Field *> old_of_;      // by the altered table's columns; nullptr: a new one
  std::vector<size_t> stored_place_;  // by the old table's columns, in the form of rows
};

const char *Planner::statement_refusal() const {
  alter_table_operations flags = info_->handler_flags;
  const HA_CREATE_INFO *create = info_->create_info;
  if (altered_->versioned() && !table_->versioned()) return "the table begins to keep versions";
  if ((flags & ~(kInstant | kIndexes | kRebuild)) != 0) return "the server alone can do that";
  bool was_sequence = table_->s->table_type == TABLE_TYPE_SEQUENCE;
  if (was_sequence || create->sequence) return "it is a sequence";
  if (refused_row_format(table_->in_use, create) != nullptr) return "there is no such ROW_FORMAT";
  if (info_->error_if_not_empty) return "a new column has no default that is a valid value";
  if (info_->ignore && (flags & ALTER_ADD_UNIQUE_INDEX) != 0) {
    return "IGNORE leaves rows out";
  }
  return nullptr;
}

const char *Planner::statement_rebuild() const {
  const alter_table_operations flags = info_->handler_flags & kRebuild;
  if ((flags & ALTER_RECREATE_TABLE) != 0) return "a rebuild was asked for";
  if (flags != 0) return "the stored rows or the primary key change";
  if (asked_.codec != was_.codec) {
    return "COMPRESSION changes, for which all data is written anew";
  }
  // A table that was made when the default was another one is left as it is.
  bool named = names_dictionary(table_, partition_) || names_dictionary(altered_, partition_);
  if (named && asked_.dictionary != was_.dictionary) {
    return "DICTIONARY changes, for which all data is written anew";
  }
  return nullptr;
}

void Planner::map_columns() {
  size_t place = 0;
  for (Field **field = table_->field; *field != nullptr; field++) {
    stored_place_.push_back((*field)->stored_in_db() ? place++ : kNone);
  }
  List_iterator_fast<Create_field> columns(info_->alter_info->create_list);
  for (Field **field = altered_->field; *field != nullptr; field++) {
    const Create_field *column = columns++;
    old_of_.push_back(column != nullptr ? column->field : nullptr);
  }
}

// Whether a part of a key has the same bytes before and after.
bool Planner::same_part(const KEY_PART_INFO &was, const KEY_PART_INFO &is) const {
  const Field *before = table_->field[was.fieldnr - 1], *after = altered_->field[is.fieldnr - 1];
  constexpr uint kFlags = HA_PART_KEY_SEG | HA_REVERSE_SORT;
  bool partly = (was.key_part_flag & HA_PART_KEY_SEG) != 0;
  return old_of_[is.fieldnr - 1] == before &&
         before->real_maybe_null() == after->real_maybe_null() &&
         before->real_type() == after->real_type() && before->charset() == after->charset() &&
         (was.key_part_flag & kFlags) == (is.key_part_flag & kFlags) &&
         (!partly || was.length == is.length);
}

// Whether a column goes, and another one has its name: a new one, or one that is renamed.
bool Planner::is_replaced(const Field *was) const {
  for (size_t number = 0; number < old_of_.size(); number++) {
    if (old_of_[number] == was) return false;
  }
  for (size_t number = 0; number < old_of_.size(); number++) {
    const Field *is = altered_->field[number];
    if (lex_string_cmp(system_charset_info, &was->field_name, &is->field_name) == 0) return true;
  }
  return false;
}

// Whether virtual columns may have other values, though they stay: the server tells of a column's
// own expression, not of the columns that it is computed of. A virtual text that gets longer may
// have been cut.
bool Planner::values_may_change() const {
  if ((info_->handler_flags & ALTER_VIRTUAL_GCOL_EXPR) != 0) return true;
  for (Field **was = table_->field; *was != nullptr; was++) {
    if (is_replaced(*was)) return true;
  }
  for (size_t number = 0; number < old_of_.size(); number++) {
    const Field *was = old_of_[number], *is = altered_->field[number];
    const bool is_virtual = was != nullptr && !was->stored_in_db() && !is->stored_in_db();
    if (is_virtual && was->pack_length() != is->pack_length()) return true;
  }
  return false;
}

bool Planner::same_key(const KEY &was, const KEY &is) const {
  if (was.user_defined_key_parts != is.user_defined_key_parts) return false;
  constexpr ulong kKind = HA_NOSAME | HA_FULLTEXT | HA_SPATIAL | HA_USES_PARSER;
  if ((was.flags & kKind) != (is.flags & kKind)) return false;
  if ((was.flags & HA_USES_PARSER) != 0 && !plugin_equals(was.parser, is.parser)) return false;
  for (uint part = 0; part < was.user_defined_key_parts; part++) {
    if (!same_part(was.key_part[part], is.key_part[part])) return false;
    const Field *column = altered_->field[is.key_part[part].fieldnr - 1];
    if (!column->stored_in_db() && values_may_change()) return false;
  }
  return true;
}

const char *Planner::primary_rebuild() const {
  uint before = table_->s->primary_key, after = altered_->s->primary_key;
  bool hidden = before == MAX_KEY && after == MAX_KEY;
  if (hidden) return nullptr;
  if (before != MAX_KEY && after != MAX_KEY &&
      same_key(table_->key_info[before], altered_->key_info[after])) {
    return nullptr;
  }
  return "the primary key changes, by which rows are stored";
}

const char *Planner::new_column_rebuild(Field *field, const ColumnDef &column) const {
  if ((field->flags & AUTO_INCREMENT_FLAG) != 0) return "a new column numbers the rows";
  const Virtual_column_info *value = field->default_value;
  if (value != nullptr && ((value->flags & ~uint(VCOL_SESSION_FUNC | VCOL_TIME_FUNC)) != 0 ||
                           is_random(*value))) {
    return "the default of a new column differs from row to row";
  }
  if (value != nullptr && !holds_default(altered_, field)) {
    return "the default of a new column does not fit into it";
  }
  if (column.in_key) return "the primary key changes";
  return nullptr;
}

const char *Planner::columns_rebuild() {
  TableDef &def = plan_.def;
  const std::vector<ColumnDef> &last = was_.forms.back();
  KeyCodec primary(altered_, altered_->s->primary_key, nullptr);
  std::vector<ColumnDef> form;
  for (uint number = 0; number < altered_->s->fields; number++) {
    Field *field = altered_->field[number];
    if (!field->stored_in_db()) continue;
    ColumnDef column = RowCodec::column_of(field, &primary);
    if (const Field *old = old_of_[number]) {
      size_t place = stored_place_[old->field_index];
      if (place >= last.size()) return "a column becomes a stored one";
      const ColumnDef &before = last[place];
      column.id = before.id;
      if (column.in_key != before.in_key || column.fixed_bytes != before.fixed_bytes ||
          (before.nullable && !column.nullable)) {
        return "a column is stored in another form";
      }
    } else {
      if (const char *why = new_column_rebuild(field, column)) return why;
      column.id = def.next_column_id++;
      InstantDefault value = RowCodec::default_of(altered_, field, altered_->record[0]);
      value.column_id = column.id;
      def.defaults.push_back(std::move(value));
    }
    form.push_back(column);
  }
  auto same = [](const ColumnDef &a, const ColumnDef &b) {
    return a.id == b.id && a.nullable == b.nullable;
  };
  if (std::equal(form.begin(), form.end(), last.begin(), last.end(), same)) return nullptr;
  if (def.forms.size() >= kMostForms) {
    return "the table has been changed so often since it was last rebuilt";
  }
  def.forms.push_back(std::move(form));
  return nullptr;
}

// The key of the old table that is this one of the altered table; nullptr: it is a new one.
const KEY *Planner::old_key_of(unsigned number) const {
  const char *name = altered_->key_info[number].name.str;
  for (uint i = 0; i < info_->index_add_count; i++) {
    const KEY &added = info_->key_info_buffer[info_->index_add_buffer[i]];
    if (my_strcasecmp(system_charset_info, added.name.str, name) == 0) return nullptr;
  }
  for (uint i = 0; i < info_->rename_keys.size(); i++) {
    const Alter_inplace_info::Rename_key_pair &pair = info_->rename_keys.at(i);
    if (my_strcasecmp(system_charset_info, pair.new_key->name.str, name) == 0) {
      return pair.old_key;
    }
  }
  for (uint i = 0; i < table_->s->keys; i++) {
    const KEY &old = table_->key_info[i];
    if (my_strcasecmp(system_charset_info, old.name.str, name) == 0) return &old;
  }
  return nullptr;
}

void Planner::plan_indexes() {
  TableDef &def = plan_.def;
  IndexDef primary = was_.indexes[0];
  std::vector<IndexDef> indexes;
  uint first = altered_->s->primary_key;
  if (first != MAX_KEY) primary.name = altered_->key_info[first].name.str;
  indexes.push_back(primary);
  std::vector<bool> kept(was_.indexes.size());
  kept[0] = true;
  for (uint number = 0; number < altered_->s->keys; number++) {
    if (number == first) continue;
    const KEY &key = altered_->key_info[number];
    const KEY *old = old_key_of(number);
    const IndexDef *found = nullptr;
    if (old != nullptr && same_key(*old, key)) {
      found = index_of(was_, table_, static_cast<unsigned>(old - table_->key_info));
    }
    if (found == nullptr) {
      plan_.added.push_back(number);
      indexes.push_back({def.next_index_id++, key.name.str});
    } else {
      kept[static_cast<size_t>(found - was_.indexes.data())] = true;
      indexes.push_back({found->id, key.name.str});
      indexes.back().words = found->words;
    }
  }
  for (size_t place = 0; place < kept.size(); place++) {
    if (!kept[place]) plan_.dropped.push_back(was_.indexes[place].id);
  }
  def.indexes = std::move(indexes);
  describe_indexes(altered_, &def);
}

// Rows and trees begin anew: of the old ones only the numbers are known, which are not used again.
void Planner::plan_rebuild() {
  TableDef &def = plan_.def;
  KeyCodec primary(altered_, altered_->s->primary_key, nullptr);
  def.forms.assign(1, RowCodec::columns_of(altered_, &primary));
  for (ColumnDef &column : def.forms[0]) column.id = def.next_column_id++;
  def.defaults.clear();
  def.hidden_key = altered_->s->primary_key == MAX_KEY;
  def.codec = asked_.codec;
  def.dictionary = asked_.dictionary;
  def.indexes.clear();
  auto add = [&](unsigned number) {
    const char *name = number == MAX_KEY ? "" : altered_->key_info[number].name.str;
    def.indexes.push_back({def.next_index_id++, name});
    plan_.added.push_back(number);
  };
  add(altered_->s->primary_key);
  for (uint number = 0; number < altered_->s->keys; number++) {
    if (number != altered_->s->primary_key) add(number);
  }
  for (const IndexDef &index : was_.indexes) plan_.dropped.push_back(index.id);
  describe_indexes(altered_, &def);
}

bool Planner::tells_partition(const Field *was) const {
  const partition_info *partitions = table_->part_info;
  return partitions != nullptr &&
         bitmap_is_set(&partitions->full_part_field_set, was->field_index);
}

// Whether partitions are told by other columns: by one that has the name of another now, or for the
// server changes names in a list one after the other, so that two which swap theirs stay in their
// places. Or by values that may be others.
bool Planner::tells_otherwise() const {
  const partition_info *was = table_->part_info, *is = altered_->part_info;
  if (was == nullptr || is == nullptr) return was != is;
  if (!same_columns(was->part_field_array, is->part_field_array, was->list_of_part_fields) ||
      !same_columns(was->subpart_field_array, is->subpart_field_array,
                    was->list_of_subpart_fields)) {
    return true;
  }
  if (!values_may_change()) return false;
  for (Field **column = table_->field; *column != nullptr; column++) {
    if ((*column)->vcol_info != nullptr && tells_partition(*column)) return true;
  }
  return false;
}

// An expression has its columns in the order of the table.
bool Planner::same_columns(Field **was, Field **is, bool in_order) const {
  std::vector<const Field *> before, after;
  for (; was != nullptr && *was != nullptr; was++) before.push_back(*was);
  for (; is != nullptr && *is != nullptr; is++) after.push_back(old_of_[(*is)->field_index]);
  if (!in_order) {
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
  }
  return before == after;
}

const char *Planner::rebuilt_column_refusal(const Field *field,
                                            const Create_field *column) const {
  const Field *was = column->field;
  const bool numbers = (field->flags & AUTO_INCREMENT_FLAG) != 0;
  if (numbers && (was == nullptr || (was->flags & AUTO_INCREMENT_FLAG) == 0)) {
    return "a column begins to number the rows";
  }
  const Virtual_column_info *made = field->vcol_info;
  if (made == nullptr && was == nullptr) made = field->default_value;
  if (made != nullptr && is_random(*made)) return "a value differs each time";
  if (field->vcol_info == nullptr && was != nullptr && !was->stored_in_db()) {
    return "a column becomes a stored one";
  }
  if (was == nullptr || !tells_partition(was)) return nullptr;
  // A generated one is computed anew, and may come out otherwise.
  const bool stays = was->is_equal(*column) && was->vcol_info == nullptr &&
                     field->vcol_info == nullptr &&
                     was->real_maybe_null() == field->real_maybe_null();
  return stays ? nullptr : kOfPartitions;
}

const char *Planner::rebuild_refusal() const {
  if (info_->ignore) return "IGNORE leaves rows out, or changes values";
  if ((info_->handler_flags & ALTER_ADD_FOREIGN_KEY) != 0) return "a foreign key is added";
  const uint before = table_->s->primary_key, after = altered_->s->primary_key;
  if (after == MAX_KEY && before != MAX_KEY) return "there is no primary key any more";
  if (table_->part_info != nullptr && primary_rebuild() != nullptr) {
    return "the primary key of a partitioned table changes";
  }
  List_iterator_fast<Create_field> columns(info_->alter_info->create_list);
  for (Field **field = altered_->field; *field != nullptr; field++) {
    if (const char *why = rebuilt_column_refusal(*field, columns++)) return why;
  }
  return nullptr;
}

// What is computed of texts may come out otherwise by another collation, and so may the partition
// that a row is in. The server tells of neither.
const char *Planner::collation_rebuild() const {
  for (Field **field = altered_->field; *field != nullptr; field++) {
    const Field *was = old_of_[(*field)->field_index];
    if (was == nullptr || was->charset() == (*field)->charset()) continue;
    if (altered_->vfield != nullptr) return "a generated column may be of a text that changes";
    if (tells_partition(was)) return kOfPartitions;
  }
  return nullptr;
}

// What a copy refuses with an error of its own.
const char *Planner::words_refusal(const KEY &key) const {
  if (!has_many_entries(key)) return nullptr;
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    if (!altered_->field[key.key_part[part].fieldnr - 1]->stored_in_db()) {
      return "a column of a FULLTEXT index is not stored";
    }
  }
  return nullptr;
}

const char *Planner::refusal() {
  if (const char *why = statement_refusal()) return why;
  map_columns();
  if (tells_otherwise()) return kOfPartitions;
  plan_.rebuild = statement_rebuild();
  if (plan_.rebuild == nullptr) plan_.rebuild = primary_rebuild();
  if (plan_.rebuild == nullptr) plan_.rebuild = columns_rebuild();
  if (plan_.rebuild == nullptr) plan_.rebuild = collation_rebuild();
  if (plan_.rebuild == nullptr) {
    plan_indexes();
  } else {
    if (const char *why = rebuild_refusal()) return why;
    plan_.def = was_;
    plan_rebuild();
  }
  for (unsigned number : plan_.added) {
    if (number == MAX_KEY) continue;
    const KEY &key = altered_->key_info[number];
    if (const char *why = words_refusal(key)) return why;
    // Its index alone does not tell which rows are in each other's way.
    if (key.algorithm == HA_KEY_ALG_LONG_HASH || key.without_overlaps) {
      return "the server compares the rows of a unique key of long values, or WITHOUT OVERLAPS";
    }
  }
  const LEX_CUSTRING &version = altered_->s->tabledef_version;
  plan_.def.version.assign(reinterpret_cast<const char *>(version.str), version.length);
  return nullptr;
}

}  // namespace

AlterPlan plan_alter(TABLE *table, TABLE *altered, Alter_inplace_info *info,
                     const std::string &path, const TableDef &was) {
  return Planner(table, altered, info, path, was).run();
}

}  // namespace shale_sql
