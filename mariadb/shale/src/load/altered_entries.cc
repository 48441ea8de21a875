// Rows become others as ALTER TABLE by copy makes them: column by column by the server's own
// conversions, then defaults of new columns, generated columns, constraints.

#include "load/altered_entries.h"

#include "codec/geometry.h"
#include "engine/errors.h"

#include <algorithm>

namespace shale_sql {

namespace {

// Adds a generated column to those that are computed, after the ones that it is computed from.
void add_generated(const TABLE *table, Field *field, bool stored_too,
                   std::vector<Field *> *columns) {
  if (field->vcol_info == nullptr || (field->stored_in_db() && !stored_too)) return;
  if (std::find(columns->begin(), columns->end(), field) != columns->end()) return;
  std::vector<my_bitmap_map> words(bitmap_buffer_size(table->s->fields) / sizeof(my_bitmap_map));
  MY_BITMAP from;
  my_bitmap_init(&from, words.data(), table->s->fields);
  field->vcol_info->expr->walk(&Item::register_field_in_bitmap, true, &from);
  for (Field **other = table->vfield; *other != nullptr; other++) {
    if (bitmap_is_set(&from, (*other)->field_index)) {
      add_generated(table, *other, stored_too, columns);
    }
  }
  columns->push_back(field);
}

// Warnings of what a row has had, which it has made before, are not made again.
class Warnings {
 public:
  Warnings(THD *thd, bool wanted) : thd_(thd), saved_(thd->count_cuted_fields) {
    if (!wanted) thd->count_cuted_fields = CHECK_FIELD_IGNORE;
  }
  Warnings(const Warnings &) = delete;
  Warnings &operator=(const Warnings &) = delete;
  ~Warnings() { thd_->count_cuted_fields = saved_; }

 private:
  THD *const thd_;
  const enum_check_fields saved_;
};

// A copy checks such values by the session's sql_mode. In place InnoDB keeps them as they are.
bool is_kept_as_is(const Field *was, const Field *is, const Create_field &column) {
  return was->cmp_type() == TIME_RESULT && was->is_equal(column) &&
         was->pack_length() == is->pack_length() &&
         was->real_maybe_null() == is->real_maybe_null();
}

// Changes for which InnoDB copies a table, and asks its constraints of each row.
constexpr alter_table_operations kChecked =
    ALTER_ADD_CHECK_CONSTRAINT | ALTER_STORED_COLUMN_TYPE | ALTER_STORED_GCOL_EXPR |
    ALTER_ADD_STORED_GENERATED_COLUMN | ALTER_COLUMN_VCOL | ALTER_VIRTUAL_COLUMN_TYPE;

}  // namespace

AlteredEntries::AlteredEntries(const Alteration &alteration)
    : alter_(alteration),
      primary_(alter_.altered, alter_.altered->s->primary_key, nullptr),
      rows_(alter_.altered, &primary_, alter_.is) {
  TABLE *altered = alter_.altered;
  for (size_t place = 0; place < alter_.indexes.size(); place++) {
    const unsigned number = alter_.indexes[place];
    if (alter_.rebuilds && place == 0) {
      codecs_.push_back(nullptr);
      unique_.push_back(number != MAX_KEY);
      has_unique_ = number != MAX_KEY;
      continue;
    }
    if (has_many(place)) {
      codecs_.push_back(nullptr);
      unique_.push_back(false);
      continue;
    }
    codecs_.push_back(std::make_unique<KeyCodec>(altered, number, &primary_));
    const KEY &key = altered->key_info[number];
    unique_.push_back((key.flags & HA_NOSAME) != 0);
    has_unique_ = has_unique_ || unique_.back();
    for (uint part = 0; part < key.user_defined_key_parts; part++) {
      Field *field = altered->field[key.key_part[part].fieldnr - 1];
      add_generated(altered, field, alter_.rebuilds, &computed_);
    }
  }
  if (alter_.rebuilds) map_columns();
}

AlteredEntries::~AlteredEntries() = default;

void AlteredEntries::map_columns() {
  TABLE *table = alter_.table, *altered = alter_.altered;
  old_primary_ = std::make_unique<KeyCodec>(table, table->s->primary_key, nullptr);
  old_rows_ = std::make_unique<RowCodec>(table, old_primary_.get(), alter_.was);
  is_checked_ = (alter_.info->handler_flags & kChecked) != 0;
  restore_record(altered, s->default_values);
  altered->reset_default_fields();
  List_iterator_fast<Create_field> columns(alter_.info->alter_info->create_list);
  for (Field **field = altered->field; *field != nullptr; field++) {
    const Create_field *column = columns++;
    Field *was = column != nullptr ? column->field : nullptr;
    if ((*field)->vcol_info != nullptr) {
      // InnoDB computes what is in no index when it copies the table only.
      const bool needed = (*field)->stored_in_db() || is_checked_;
      if (needed) add_generated(altered, *field, true, &computed_);
    } else if (was != nullptr) {
      (*field)->set_has_explicit_value();
      if (is_kept_as_is(was, *field, *column)) {
        kept_.emplace_back(was, *field);
        continue;
      }
      copies_.emplace_back();
      copies_.back().set(*field, was, false);
    } else if ((*field)->default_value != nullptr) {
      has_defaults_ = true;
    }
  }
}

Error AlteredEntries::check() {
  if (!alter_.rebuilds) return 0;
  List_iterator_fast<Create_field> columns(alter_.info->alter_info->create_list);
  for (Field **field = alter_.altered->field; *field != nullptr; field++) {
    const Create_field *column = columns++;
    if (column == nullptr || column->field == nullptr || (*field)->vcol_info != nullptr) continue;
    if ((*field)->check_assignability_from(column->field, false)) return HA_ERR_GENERIC;
  }
  return 0;
}

// TABLE::update_virtual_fields would make warnings of errors, those of the strict mode too. What
// could not be written into a row ends the statement.
Error AlteredEntries::compute() {
  TABLE *altered = alter_.altered;
  Query_arena backup;
  alter_.thd->set_n_backup_active_arena(altered->expr_arena, &backup);
  for (Field *field : computed_) field->vcol_info->expr->save_in_field(field, false);
  alter_.thd->restore_active_arena(altered->expr_arena, &backup);
  return alter_.thd->is_error() ? HA_ERR_GENERIC : 0;
}

bool AlteredEntries::is_left_out() const {
  const TABLE *table = alter_.table;
  return table->versioned() && !alter_.altered->versioned() && !table->vers_end_field()->is_max();
}

Error AlteredEntries::convert(bool comes) {
  THD *thd = alter_.thd;
  TABLE *altered = alter_.altered;
  for (Copy_field &copy : copies_) copy.do_copy(&copy);
  for (const auto &[was, is] : kept_) {
    memcpy(is->ptr, was->ptr, was->pack_length());
    if (!was->real_maybe_null()) continue;
    was->is_null() ? is->set_null() : is->set_notnull();
  }
  if (has_defaults_ && altered->update_default_fields(false) != 0) return HA_ERR_GENERIC;
  if (thd->is_error()) return HA_ERR_GENERIC;
  if (!computed_.empty()) {
    if (Error error = compute()) return error;
  }
  if (comes && is_checked_) altered->verify_constraints(false);
  return thd->is_error() ? HA_ERR_GENERIC : 0;
}

Error AlteredEntries::of_row(std::string_view key, std::string_view value, bool comes,
                             std::vector<AlteredEntry> *entries) {
  Warnings warnings(alter_.thd, comes);
  const uchar *row = alter_.altered->record[0];
  if (alter_.rebuilds) {
    if (!old_rows_->unpack(key, value, nullptr, alter_.table->record[0])) {
      return Error(kErrDamagedRow, "a row of the table is damaged; CHECK TABLE says which");
    }
    if (is_left_out()) {
      entries->clear();
      return 0;
    }
    if (Error error = convert(comes)) return error;
  } else {
    if (Error error = show(key, value)) return error;
    if (!computed_.empty()) {
      if (Error error = compute()) return error;
    }
  }
  entries->resize(codecs_.size());
  std::string_view primary = key;
  for (size_t place = 0; place < codecs_.size(); place++) {
    AlteredEntry &entry = (*entries)[place];
    entry.is_unique = unique_[place];
    entry.key.clear();
    entry.value.clear();
    if (has_many(place)) {
      alter_.many[place]->pack(row, primary, &entry.many);
      continue;
    }
    if (codecs_[place] == nullptr) {
      if (alter_.indexes[place] == MAX_KEY) {
        entry.key.assign(key);
      } else {
        primary_.pack_columns(row, &entry.key);
      }
      rows_.pack(row, &entry.value);
      primary = entry.key;
      continue;
    }
    const Geometries *geometries = codecs_[place]->geometries();
    if (comes && geometries != nullptr && !geometries->has_geometry(row)) {
      my_error(ER_CANT_CREATE_GEOMETRY_OBJECT, MYF(0));
      return HA_ERR_NULL_IN_SPATIAL;
    }
    bool has_null = false;
    codecs_[place]->pack_columns(row, &entry.key, &has_null);
    codecs_[place]->append_primary(primary, has_null, &entry.key);
    codecs_[place]->pack_value(row, primary, has_null, &entry.value);
    entry.is_unique = entry.is_unique && !has_null;
  }
  return 0;
}

Error AlteredEntries::show(std::string_view key, std::string_view value) {
  if (rows_.unpack(key, value, nullptr, alter_.altered->record[0])) return 0;
  return Error(kErrDamagedRow, "a row of the table is damaged; CHECK TABLE says which");
}

bool AlteredEntries::primary_of(size_t place, std::string_view key, std::string_view value,
                                std::string_view *primary) const {
  if (codecs_[place] != nullptr) return codecs_[place]->primary_of(key, value, primary);
  *primary = key;
  return true;
}

}  // namespace shale_sql
