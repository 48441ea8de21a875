// The keys of an index: their parts one after another, then what tells equal ones apart.

#include "codec/key_codec.h"

#include "server.h"

#include "codec/geometry.h"
#include "codec/key_part.h"

namespace shale_sql {

namespace {

constexpr size_t kHiddenBytes = 8;

bool prefix_only(const KeyPart &part) { return part.lost() == KeyPart::Lost::kPrefix; }

}  // namespace

KeyCodec::KeyCodec(TABLE *table, unsigned index, const KeyCodec *primary)
    : KeyCodec(table, index >= MAX_KEY ? nullptr : &table->key_info[index], primary) {}

KeyCodec::KeyCodec(TABLE *table, const KEY *index, const KeyCodec *primary)
    : primary_(primary), hidden_(index == nullptr) {
  if (hidden_) {
    primary_bytes_ = kHiddenBytes;
    return;
  }
  const KEY &info = *index;
  unique_ = primary && (info.flags & HA_NOSAME);
  const bool is_spatial = (info.flags & HA_SPATIAL) != 0;
  if (is_spatial) geometries_ = std::make_unique<Geometries>(table, info.key_part[0]);
  parts_.reserve(info.user_defined_key_parts);
  size_t bytes = 0;
  bool one_length = true;
  for (unsigned i = 0; i < info.user_defined_key_parts && !is_spatial; i++) {
    parts_.emplace_back(table, info.key_part[i]);
    bytes += parts_.back().fixed_bytes();
    one_length = one_length && parts_.back().fixed_bytes() != 0;
  }
  if (!primary) {
    primary_bytes_ = one_length ? bytes : 0;
    return;
  }
  primary_bytes_ = primary->primary_bytes_;
  find_primary_parts(info);
}

KeyCodec::~KeyCodec() = default;

// Which columns of the primary key the index has itself, and what else entries have to keep.
void KeyCodec::find_primary_parts(const KEY &info) {
  size_t offset = 0;
  for (unsigned i = 0; i < info.ext_key_parts; i++) {
    tuple_offset_.push_back(offset);
    offset += info.key_part[i].store_length;
  }
  std::vector<const KeyPart *> columns;
  for (const KeyPart &part : parts_) columns.push_back(&part);
  unsigned extended = info.user_defined_key_parts;
  has_primary_ = !primary_->hidden_;
  for (unsigned i = 0; i < primary_->parts_.size(); i++) {
    const KeyPart &part = primary_->parts_[i];
    PrimaryInTuple from;
    bool own = false;
    for (unsigned j = 0; j < parts_.size() && !prefix_only(part); j++) {
      if (parts_[j].field_index() != part.field_index() || prefix_only(parts_[j])) continue;
      own = true;
      from = PrimaryInTuple{j, true};
    }
    if (info.ext_key_part_map & (key_part_map{1} << i)) from = PrimaryInTuple{extended++, true};
    if (from.part >= info.ext_key_parts) from.known = false;
    primary_in_tuple_.push_back(from);
    if (!own) columns.push_back(&part);
    has_primary_ = has_primary_ && own;
  }
  for (const KeyPart *part : columns) {
    const KeyPart::Lost lost = part->lost();
    if (lost == KeyPart::Lost::kValue) kept_.push_back(part);
    if (lost == KeyPart::Lost::kSpaces || lost == KeyPart::Lost::kMinusZero)
      counted_.push_back(part);
  }
}

void KeyCodec::pack_columns(const uchar *record, std::string *out, bool *has_null) const {
  bool null = false;
  if (geometries_) append_cell(geometries_->mbr_of(record), out);
  for (const KeyPart &part : parts_) null |= part.pack(record, out);
  if (has_null) *has_null = null;
}

void KeyCodec::pack_tuple(const uchar *tuple, unsigned long parts, std::string *out) const {
  const uchar *from = tuple;
  for (unsigned i = 0; i < parts_.size(); i++) {
    if (!(parts >> i & 1)) return;
    parts_[i].pack_tuple(from, out);
    from += parts_[i].tuple_bytes();
  }
  // HA_WHOLE_KEY says all parts, but callers mean those of the user: their tuple ends there.
  if (!primary_ || parts == HA_WHOLE_KEY || !(parts >> parts_.size())) return;
  // Entries have the whole primary key: a column of it that the index has too comes from there.
  for (unsigned i = 0; i < primary_in_tuple_.size(); i++) {
    const PrimaryInTuple &in = primary_in_tuple_[i];
    if (!in.known || !(parts >> in.part & 1)) return;
    primary_->parts_[i].pack_tuple(tuple + tuple_offset_[in.part], out);
  }
}

void KeyCodec::append_primary(std::string_view primary, bool has_null, std::string *key) const {
  if (!unique_ || has_null) key->append(primary);
}

void KeyCodec::pack_value(const uchar *record, std::string_view primary, bool has_null,
                          std::string *out) const {
  if (unique_) {
    append_varint(out, has_null ? 0 : primary.size());
    if (!has_null) out->append(primary);
  }
  if (geometries_) append_mbr(geometries_->mbr_of(record), out);
  for (const KeyPart *part : kept_) {
    if (!part->is_null(record)) part->pack_lost(record, out);
  }
  if (counted_.empty()) return;
  const size_t start = out->size();
  uint64_t any = 0;
  for (const KeyPart *part : counted_) {
    const uint64_t count = part->is_null(record) ? 0 : part->lost_count(record);
    any |= count;
    append_varint(out, count);
  }
  if (!any) out->resize(start);
}

// An entry's key and value in parts: `rest` is the value without the primary key.
bool KeyCodec::split(std::string_view key, std::string_view value, std::string_view *own,
                     std::string_view *primary, Reader *rest) const {
  *rest = Reader(value);
  *own = key;
  if (unique_) {
    if (!rest->with_length(primary)) return false;
    if (!primary->empty()) return true;
  }
  size_t own_bytes = 0;
  if (geometries_) {
    if (key.size() < kCellBytes || !rest->take(kMbrBytes)) return false;
    own_bytes = kCellBytes;
  } else if (primary_bytes_) {
    if (key.size() < primary_bytes_) return false;
    own_bytes = key.size() - primary_bytes_;
  } else {
    Reader reader(key);
    for (const KeyPart &part : parts_) {
      if (!part.skip(&reader)) return false;
    }
    own_bytes = key.size() - reader.left();
  }
  *own = key.substr(0, own_bytes);
  *primary = key.substr(own_bytes);
  return true;
}

bool KeyCodec::primary_of(std::string_view key, std::string_view value,
                          std::string_view *primary) const {
  std::string_view own;
  Reader rest(value);
  return split(key, value, &own, primary, &rest);
}

bool KeyCodec::unpack(std::string_view key, std::string_view value, uchar *record,
                      std::string_view *of_row) const {
  if (hidden_) return key.size() == kHiddenBytes;
  std::string_view own = key, primary;
  Reader rest(value);
  if (primary_ && !split(key, value, &own, &primary, &rest)) return false;
  if (of_row != nullptr) *of_row = primary;
  Reader reader(own);
  if (geometries_) reader.pass(kCellBytes);
  for (const KeyPart &part : parts_) {
    bool is_null;
    if (!part.unpack(&reader, record, &is_null)) return false;
  }
  if (reader.left() != 0) return false;
  if (!primary_) return true;
  // Before what was lost is put back: it may be of columns that both keys have.
  if (!has_primary_ && !primary_->unpack(primary, std::string_view(), record)) return false;
  for (const KeyPart *part : kept_) {
    if (!part->is_null(record) && !part->unpack_lost(&rest, record)) return false;
  }
  if (rest.left() == 0) return true;
  for (const KeyPart *part : counted_) {
    uint64_t count = 0;
    if (!rest.varint(&count)) return false;
    if (!part->is_null(record) && !part->restore_lost_count(count, record)) return false;
  }
  return rest.left() == 0;
}

bool KeyCodec::part_ends(std::string_view key, std::vector<size_t> *ends) const {
  ends->clear();
  Reader reader(key);
  if (geometries_) {
    if (!reader.take(kCellBytes)) return false;
    ends->push_back(kCellBytes);
  }
  for (const KeyPart &part : parts_) {
    if (!part.skip(&reader)) return false;
    ends->push_back(key.size() - reader.left());
  }
  return true;
}

bool KeyCodec::restores(const Field *field) const {
  for (const KeyPart &part : parts_) {
    if (part.field_index() == field->field_index && part.lost() == KeyPart::Lost::kNothing)
      return true;
  }
  return false;
}

bool KeyCodec::covers() const {
  for (unsigned i = 0; i < parts_.size(); i++) {
    if (!covers_part(i)) return false;
  }
  return true;
}

bool KeyCodec::covers_part(unsigned part) const {
  if (part < parts_.size()) {
    if (!primary_) return parts_[part].lost() == KeyPart::Lost::kNothing;
    return !prefix_only(parts_[part]);
  }
  for (unsigned i = 0; i < primary_in_tuple_.size(); i++) {
    if (primary_in_tuple_[i].known && primary_in_tuple_[i].part == part)
      return !prefix_only(primary_->parts_[i]);
  }
  return false;
}

bool KeyCodec::gives(unsigned field) const {
  for (const KeyPart &part : parts_) {
    if (part.field_index() == field && !prefix_only(part)) return true;
  }
  return primary_ && primary_->gives(field);
}

bool KeyCodec::begins(unsigned field) const {
  for (const KeyPart &part : parts_) {
    if (part.field_index() == field && prefix_only(part)) return true;
  }
  return primary_ && primary_->begins(field);
}

size_t KeyCodec::max_bytes() const {
  size_t bytes = hidden_ ? kHiddenBytes : geometries_ ? kCellBytes : 0;
  for (const KeyPart &part : parts_) bytes += part.max_bytes();
  return bytes + (primary_ ? primary_->max_bytes() : 0);
}

}  // namespace shale_sql
