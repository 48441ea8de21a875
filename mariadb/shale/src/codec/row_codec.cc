// The columns of a row one after another, in the form that it was written in.

#include "codec/row_codec.h"

#include "server.h"

#include "codec/column.h"

namespace shale_sql {

namespace {

// One above the highest field that is wanted.
uint32_t end_of(const MY_BITMAP *wanted) {
  if (!wanted) return UINT32_MAX;
  uint32_t words = (wanted->n_bits + 63) / 64;
  while (words > 0 && wanted->bitmap[words - 1] == 0) words--;
  if (words == 0) return 0;
  return words * 64 - static_cast<uint32_t>(__builtin_clzll(wanted->bitmap[words - 1]));
}

bool has(const MY_BITMAP *wanted, uint32_t field_index) {
  return !wanted || (wanted->bitmap[field_index / 64] >> (field_index % 64) & 1);
}

}  // namespace

RowCodec::RowCodec(TABLE *table, const KeyCodec *primary, std::shared_ptr<const TableDef> def)
    : primary_(primary), def_(std::move(def)) {
  for (Field **field = table->field; *field; field++) {
    if (!(*field)->stored_in_db()) continue;
    columns_.emplace_back(table, *field);
    field_index_.push_back((*field)->field_index);
  }
  forms_.resize(def_->forms.size());
  for (size_t i = 0; i < forms_.size(); i++) make_form(def_->forms[i], &forms_[i]);
}

RowCodec::~RowCodec() = default;

void RowCodec::make_form(const std::vector<ColumnDef> &columns, Form *form) const {
  const std::vector<ColumnDef> &last = def_->forms.back();
  std::vector<bool> found(last.size());
  uint32_t null_bits = 0;
  for (const ColumnDef &def : columns) {
    Stored stored{def.fixed_bytes, def.nullable, nullptr, 0};
    for (size_t i = 0; i < last.size() && i < columns_.size(); i++) {
      if (last[i].id != def.id) continue;
      stored.column = &columns_[i];
      stored.field_index = field_index_[i];
      found[i] = true;
    }
    if (def.in_key) continue;
    form->stored.push_back(stored);
    if (def.nullable) null_bits++;
  }
  form->null_bytes = (null_bits + 7) / 8;
  for (size_t i = 0; i < last.size() && i < columns_.size(); i++) {
    if (found[i]) continue;
    Later later{&columns_[i], field_index_[i], nullptr};
    for (const InstantDefault &value : def_->defaults) {
      if (value.column_id == last[i].id) later.value = &value;
    }
    form->later.push_back(later);
  }
}

ColumnDef RowCodec::column_of(Field *field, const KeyCodec *primary) {
  ColumnDef def;
  def.nullable = field->real_maybe_null();
  def.fixed_bytes = Column(field->table, field).fixed_bytes();
  def.in_key = primary && primary->restores(field);
  return def;
}

std::vector<ColumnDef> RowCodec::columns_of(TABLE *table, const KeyCodec *primary) {
  std::vector<ColumnDef> columns;
  for (Field **field = table->field; *field; field++) {
    if (!(*field)->stored_in_db()) continue;
    columns.push_back(column_of(*field, primary));
    columns.back().id = static_cast<uint32_t>(columns.size() - 1);
  }
  return columns;
}

bool RowCodec::fits(TABLE *table, const KeyCodec *primary, const TableDef &def) {
  const std::vector<ColumnDef> columns = columns_of(table, primary);
  const std::vector<ColumnDef> &there = def.forms.back();
  auto fits = [](const ColumnDef &column, const ColumnDef &stored) {
    return column.nullable == stored.nullable && column.fixed_bytes == stored.fixed_bytes &&
           (column.in_key || !stored.in_key);
  };
  return std::equal(columns.begin(), columns.end(), there.begin(), there.end(), fits);
}

InstantDefault RowCodec::default_of(TABLE *table, Field *field, const uchar *record) {
  InstantDefault value;
  const Column column(table, field);
  value.is_null = column.is_null(record);
  if (value.is_null) return value;
  column.append(record, &value.value);
  if (column.fixed_bytes()) return value;
  Reader reader(value.value);
  uint64_t n;
  reader.varint(&n);
  value.value.erase(0, value.value.size() - reader.left());
  return value;
}

void RowCodec::pack(const uchar *record, std::string *out) const {
  const Form &form = forms_.back();
  append_varint(out, forms_.size() - 1);
  size_t null_at = out->size();
  out->append(form.null_bytes, '\0');
  unsigned bit = 0;
  for (const Stored &stored : form.stored) {
    if (stored.nullable) {
      const bool null = stored.column->is_null(record);
      if (null) (*out)[null_at] = static_cast<char>((*out)[null_at] | 1 << bit);
      if (++bit == 8) {
        bit = 0;
        null_at++;
      }
      if (null) continue;
    }
    stored.column->append(record, out);
  }
}

bool RowCodec::same(const uchar *record, const uchar *other) const {
  for (const Column &column : columns_) {
    if (!column.same(record, other)) return false;
  }
  return true;
}

bool RowCodec::store_defaults(const Form &form, const MY_BITMAP *wanted, uchar *record) const {
  for (const Later &later : form.later) {
    if (!has(wanted, later.field_index)) continue;
    if (!later.value) return false;
    const InstantDefault &value = *later.value;
    if (value.is_null) {
      if (!later.column->nullable()) return false;
      later.column->clear(record);
      continue;
    }
    if (later.column->nullable()) later.column->set_not_null(record);
    if (!later.column->store(bytes_of(value.value), value.value.size(), record)) return false;
  }
  return true;
}

bool RowCodec::needs_value(const MY_BITMAP *wanted) const {
  if (end_of(wanted) == 0) return false;
  const std::vector<ColumnDef> &last = def_->forms.back();
  for (size_t i = 0; i < field_index_.size(); i++) {
    if (!last[i].in_key && has(wanted, field_index_[i])) return true;
  }
  return false;
}

bool RowCodec::unpack(std::string_view key, std::string_view value, const MY_BITMAP *wanted,
                      uchar *record) const {
  if (!primary_->unpack(key, std::string_view(), record)) return false;
  if (value.data() == nullptr) return true;
  Reader row(value);
  uint64_t number = 0;
  if (!row.varint(&number) || number >= forms_.size()) return false;
  const Form &form = forms_[static_cast<size_t>(number)];
  const uchar *nulls = row.take(form.null_bytes);
  if (!nulls) return false;
  const uint32_t end = end_of(wanted);
  const bool last = &form == &forms_.back();
  unsigned bit = 0;
  for (const Stored &stored : form.stored) {
    // Fields are in order in the last form.
    if (last && stored.field_index >= end) return true;
    bool null = false;
    if (stored.nullable) {
      null = *nulls >> bit & 1;
      if (++bit == 8) {
        bit = 0;
        nulls++;
      }
    }
    uint64_t n = stored.fixed_bytes;
    if (!null && n == 0 && !row.varint(&n)) return false;
    const uchar *from = null ? nullptr : row.take(n);
    if (!null && !from) return false;
    const Column *column = stored.column;
    if (!column || !has(wanted, stored.field_index)) continue;
    if (null) {
      if (!column->nullable()) return false;
      column->clear(record);
      continue;
    }
    if (column->nullable()) column->set_not_null(record);
    if (!column->store(from, static_cast<size_t>(n), record)) return false;
  }
  if (!form.later.empty() && !store_defaults(form, wanted, record)) return false;
  return row.left() == 0;
}

}  // namespace shale_sql
