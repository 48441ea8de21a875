// Definitions as bytes, field by field.

#include "codec/table_bytes.h"

#include "codec/fields.h"

#include <algorithm>

namespace shale_sql {

namespace {

constexpr uchar kWithoutParts = 1, kWithoutRowEnd = 2, kWithoutMany = 3,
                kWithoutStopwords = 4, kFormat = 5;

void put_index(std::string *out, const IndexDef &index) {
  append_varint(out, index.id);
  put_text(out, index.name);
  append_varint(out, (index.unique ? 1 : 0) | (index.has_words ? 2 : 0));
  append_varint(out, index.parts.size());
  for (const PartDef &part : index.parts) {
    put_text(out, part.column);
    append_varint(out, (part.nullable ? 1 : 0) | (part.descending ? 2 : 0) | (part.whole ? 4 : 0));
    put_text(out, part.kind);
    put_text(out, part.form);
    append_varint(out, part.fixed_bytes);
  }
  if (!index.has_words) return;
  append_varint(out, index.words.min_chars);
  append_varint(out, index.words.max_chars);
  const WordRules &words = index.words;
  append_varint(out, (words.stopwords ? 1 : 0) | (words.stopword_collation != 0 ? 2 : 0));
  if (words.stopword_collation == 0) return;
  append_varint(out, words.stopword_collation);
  append_varint(out, words.own_stopwords.size());
  for (const std::string &word : words.own_stopwords) put_text(out, word);
}

void read_parts(FieldReader *in, IndexDef *index) {
  const uint64_t flags = in->number();
  index->unique = (flags & 1) != 0;
  index->has_words = (flags & 2) != 0;
  index->parts.resize(in->count());
  for (PartDef &part : index->parts) {
    part.column = in->text();
    const uint64_t flags = in->number();
    part.nullable = (flags & 1) != 0;
    part.descending = (flags & 2) != 0;
    part.whole = (flags & 4) != 0;
    part.kind = in->text();
    part.form = in->text();
    part.fixed_bytes = static_cast<uint32_t>(in->number());
  }
  if (!index->has_words) return;
  index->words.min_chars = static_cast<uint32_t>(in->number());
  index->words.max_chars = static_cast<uint32_t>(in->number());
  const uint64_t lists = in->number();
  index->words.stopwords = (lists & 1) != 0;
  if ((lists & 2) == 0) return;
  index->words.stopword_collation = static_cast<uint32_t>(in->number());
  index->words.own_stopwords.resize(in->count());
  for (std::string &word : index->words.own_stopwords) word = in->text();
}

// Older plugins take entries of FULLTEXT and SPATIAL indexes for others, and know no lists of stop
// words: such a table is not one for them. Others are of the format that they read.
uchar format_of(const TableDef &def) {
  uchar format = kWithoutMany;
  for (const IndexDef &index : def.indexes) {
    const auto &parts = index.parts;
    if (index.words.stopword_collation != 0) return kFormat;
    if (index.has_words || std::any_of(parts.begin(), parts.end(), is_of_cells)) {
      format = kWithoutStopwords;
    }
  }
  return format;
}

}  // namespace

std::string bytes_of(const TableDef &def) {
  std::string out(1, static_cast<char>(format_of(def)));
  append_varint(&out, def.table_id);
  append_varint(&out, (def.hidden_key ? 1 : 0) | (def.temporary ? 2 : 0) |
                          (def.dictionary ? 4 : 0) | (def.discarded ? 8 : 0));
  append_varint(&out, def.next_column_id);
  append_varint(&out, def.next_index_id);
  put_text(&out, def.codec);
  put_text(&out, def.version);
  append_varint(&out, def.forms.size());
  for (const auto &form : def.forms) {
    append_varint(&out, form.size());
    for (const ColumnDef &column : form) {
      append_varint(&out, column.id);
      append_varint(&out, (column.nullable ? 1 : 0) | (column.in_key ? 2 : 0));
      append_varint(&out, column.fixed_bytes);
    }
  }
  append_varint(&out, def.defaults.size());
  for (const InstantDefault &value : def.defaults) {
    append_varint(&out, value.column_id);
    append_varint(&out, value.is_null);
    put_text(&out, value.value);
  }
  append_varint(&out, def.indexes.size());
  for (const IndexDef &index : def.indexes) put_index(&out, index);
  put_text(&out, def.row_end.column);
  append_varint(&out, def.row_end.column_id);
  return out;
}

bool parse(std::string_view bytes, TableDef *def) {
  const uchar format = bytes.empty() ? 0 : static_cast<uchar>(bytes.front());
  if (format < kWithoutParts || format > kFormat) return false;
  FieldReader in(bytes.substr(1));
  def->table_id = in.number();
  uint64_t flags = in.number();
  def->hidden_key = (flags & 1) != 0;
  def->temporary = (flags & 2) != 0;
  def->dictionary = (flags & 4) != 0;
  def->discarded = (flags & 8) != 0;
  def->next_column_id = static_cast<uint32_t>(in.number());
  def->next_index_id = static_cast<uint32_t>(in.number());
  def->codec = in.text();
  def->version = in.text();
  def->forms.resize(in.count());
  for (auto &form : def->forms) {
    form.resize(in.count());
    for (ColumnDef &column : form) {
      column.id = static_cast<uint32_t>(in.number());
      uint64_t flags = in.number();
      column.nullable = (flags & 1) != 0;
      column.in_key = (flags & 2) != 0;
      column.fixed_bytes = static_cast<uint32_t>(in.number());
    }
  }
  def->defaults.resize(in.count());
  for (InstantDefault &value : def->defaults) {
    value.column_id = static_cast<uint32_t>(in.number());
    value.is_null = in.number() != 0;
    value.value = in.text();
  }
  def->indexes.resize(in.count());
  for (IndexDef &index : def->indexes) {
    index.id = static_cast<uint32_t>(in.number());
    index.name = in.text();
    if (format != kWithoutParts) read_parts(&in, &index);
  }
  if (format > kWithoutRowEnd) {
    def->row_end.column = in.text();
    def->row_end.column_id = static_cast<uint32_t>(in.number());
  }
  return in.is_whole() && !def->forms.empty() && !def->indexes.empty();
}

}  // namespace shale_sql
