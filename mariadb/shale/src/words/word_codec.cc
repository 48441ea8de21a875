// Entries of the words of a row.

#include "words/word_codec.h"

#include "server.h"

#include <algorithm>

namespace shale_sql {

WordCodec::WordCodec(TABLE *table, const KEY &key, const WordRules &rules)
    : table_(table),
      forms_(table->field[key.key_part[0].fieldnr - 1]->charset(), rules, parser_of(key)) {
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    fields_.push_back(table->field[key.key_part[part].fieldnr - 1]);
  }
}

void WordCodec::text_of(const uchar *record, std::string *text,
                        std::vector<size_t> *begins) const {
  text->clear();
  begins->clear();
  const my_ptrdiff_t offset = record - table_->record[0];
  // A column may be read that the statement has not asked for.
  MY_BITMAP *all = dbug_tmp_use_all_columns(table_, &table_->read_set);
  // Values of CHAR are without the spaces at their end, whatever the session wants to see.
  Sql_mode_instant_remove mode(table_->in_use, MODE_PAD_CHAR_TO_FULL_LENGTH);
  String buffer;
  for (Field *field : fields_) {
    if (field->is_real_null(offset)) continue;
    field->move_field_offset(offset);
    const String *value = field->val_str(&buffer, &buffer);
    const std::string_view bytes(value->ptr(), value->length());
    if (!bytes.empty()) {
      if (!begins->empty()) text->push_back(' ');
      begins->push_back(text->size());
      text->append(bytes);
    }
    field->move_field_offset(-offset);
  }
  dbug_tmp_restore_column_map(&table_->read_set, all);
}

void WordCodec::pack(const uchar *record, std::string_view primary, ManyEntries *out) const {
  struct Place {
    size_t begin, bytes;  // its word's form, in `forms`
    uint64_t at;
  };
  std::vector<Place> places;
  std::string forms;
  each_token(record, [&](const Token &token, uint64_t at) {
    const size_t begin = forms.size();
    if (forms_.form_of(token, &forms)) places.push_back({begin, forms.size() - begin, at});
  });
  const auto form_of = [&](const Place &place) {
    return std::string_view(forms).substr(place.begin, place.bytes);
  };
  std::sort(places.begin(), places.end(), [&](const Place &a, const Place &b) {
    const int order = form_of(a).compare(form_of(b));
    return order != 0 ? order < 0 : a.at < b.at;
  });
  out->clear();
  uint64_t last = 0;
  for (size_t i = 0; i < places.size(); i++) {
    if (i == 0 || form_of(places[i]) != form_of(places[i - 1])) {
      out->emplace_back();
      out->back().key.reserve(places[i].bytes + primary.size());
      out->back().key.assign(form_of(places[i])).append(primary);
      last = 0;
    }
    append_varint(&out->back().value, places[i].at - last);
    last = places[i].at;
  }
}

bool WordCodec::primary_of(std::string_view key, std::string_view,
                           std::string_view *primary) const {
  Reader reader(key);
  if (!forms_.skip(&reader) || reader.left() == 0) return false;
  *primary = key.substr(key.size() - reader.left());
  return true;
}

bool read_places(std::string_view value, std::vector<uint64_t> *places) {
  places->clear();
  Reader reader(value);
  uint64_t at = 0, step = 0;
  while (reader.left() != 0) {
    if (!reader.varint(&step)) return false;
    places->push_back(at += step);
  }
  return !places->empty();
}

uint64_t count_places(std::string_view value) {
  return static_cast<uint64_t>(std::count_if(value.begin(), value.end(), [](char byte) {
    return (static_cast<uchar>(byte) & 0x80) == 0;
  }));
}

}  // namespace shale_sql
