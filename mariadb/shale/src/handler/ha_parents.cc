// INSERT of many rows whose values are written out: what the look-ups of their parents have to read
// is asked for before the first of them, so that the disk does it at once. Nothing else changes:
// each row looks its parents up when it is written.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "tables/constraint_text.h"
#include "tables/links.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// For so many rows at once, if parents of the first few have to be read.
constexpr ha_rows kRows = 256, kFirstRows = 2;
constexpr unsigned kLongestPause = 16;

// Where a column is in each list of values; -1: nowhere.
int place_in_lists(const Field *column, const TABLE *table, List<Item> *named) {
  int place = 0;
  if (named->elements == 0) {
    for (Field **field = table->field; *field != nullptr; field++) {
      if (*field == column) return place;
      if ((*field)->invisible == VISIBLE) place++;
    }
    return -1;
  }
  List_iterator_fast<Item> items(*named);
  while (Item *item = items++) {
    const Item_field *field = item->field_for_view_update();
    if (field != nullptr && field->field == column) return place;
    place++;
  }
  return -1;
}

// A value of which nothing has to be computed; false: it is another, or does not fit.
bool put_literal(THD *thd, List<Item> *values, int place, Field *field) {
  List_iterator_fast<Item> items(*values);
  Item *item = items++;
  for (; item != nullptr && place > 0; place--) item = items++;
  if (item == nullptr) return false;
  // Also the question whether it is a literal is an error, of a parameter that is DEFAULT.
  Dummy_error_handler quiet;
  thd->push_internal_handler(&quiet);
  bool fits = item->basic_const_item();
  if (fits) {
    field->set_notnull();
    fits = item->save_in_field_no_warnings(field, true) == 0;
  }
  thd->pop_internal_handler();
  return fits;
}

}  // namespace

// The parents' keys of one row whose values are put into the record.
struct ha_shale::ParentsAhead::Of {
  struct Column {
    Field *field;
    int place;
  };
  const Link *link;
  std::vector<Column> columns;
  std::vector<std::string> keys;

  bool find_columns(TABLE *table, List<Item> *named) {
    for (const std::string &name : link->key->columns) {
      Field *field = field_named(table->field, name);
      const int place = field == nullptr ? -1 : place_in_lists(field, table, named);
      if (place < 0 || field->vcol_info != nullptr) return false;
      columns.push_back({field, place});
    }
    return true;
  }

  bool put_row(THD *thd, List<Item> *values) const {
    for (const Column &column : columns) {
      if (!put_literal(thd, values, column.place, column.field)) return false;
    }
    return true;
  }

  // For how many blocks was asked.
  uint64_t ask() {
    if (keys.empty()) return 0;
    std::vector<const void *> bytes;
    std::vector<size_t> lengths;
    for (const std::string &key : keys) {
      bytes.push_back(key.data());
      lengths.push_back(key.size());
    }
    uint64_t asked = 0;
    // Whatever is in the way of it, the look-up tells.
    ErrorHandle ignored(
        shale_prefetch(link->other.get(), bytes.data(), lengths.data(), keys.size(), &asked));
    keys.clear();
    return asked;
  }
};

void ha_shale::add_parent_ahead(ParentsAhead::Of *of, const std::string &own) {
  bool possible = false;
  std::string key;
  if (key_of_other(*of->link, own, shared_->path, &key, &possible)) return;
  if (!possible || key.empty() || trx()->known_parents().has(of->link->number, key)) return;
  if (of->keys.empty() || of->keys.back() != key) of->keys.push_back(std::move(key));
}

// Before a row is written, whose record stays as it is.
void ha_shale::ask_for_parents() {
  if (parents_ahead_.written++ < parents_ahead_.asked) return;
  const ha_rows first = parents_ahead_.asked, end = std::min(first + kRows, parents_ahead_.rows);
  parents_ahead_.asked = end;
  if (parents_ahead_.left > 0) {
    parents_ahead_.left--;
    return;
  }
  THD *thd = ha_thd();
  LEX *lex = thd->lex;
  const bool is_written_out = (lex->sql_command == SQLCOM_INSERT ||
                               lex->sql_command == SQLCOM_REPLACE) &&
                              lex->many_values.elements == parents_ahead_.rows &&
                              lex->query_tables != nullptr && lex->query_tables->table == table;
  if (!is_written_out || !checks_foreign_keys(thd)) return;
  std::vector<ParentsAhead::Of> all;
  for (const Link &link : references_->parents) {
    if (link.place == Link::kNone || link.other == nullptr || !link.is_whole_unique) continue;
    ParentsAhead::Of of{&link, {}, {}};
    if (of.find_columns(table, &lex->field_list)) all.push_back(std::move(of));
  }
  if (all.empty()) return;
  const std::string record(reinterpret_cast<char *>(table->record[0]), table->s->reclength);
  List_iterator_fast<List_item> lists(lex->many_values);
  std::string own;
  uint64_t asked = 0;
  for (ha_rows row = 0; row < end; row++) {
    List_item *values = lists++;
    if (values == nullptr) break;
    if (row < first) continue;
    for (ParentsAhead::Of &of : all) {
      if (!of.put_row(thd, values)) continue;
      own.clear();
      indexes_[of.link->place].codec->pack_columns(table->record[0], &own);
      add_parent_ahead(&of, own);
    }
    if (row + 1 != first + kFirstRows) continue;
    for (ParentsAhead::Of &of : all) asked += of.ask();
    if (asked == 0) break;
  }
  for (ParentsAhead::Of &of : all) asked += of.ask();
  const unsigned longer = std::min(2 * parents_ahead_.pause + 1, kLongestPause);
  parents_ahead_.left = parents_ahead_.pause = asked > 0 ? 0 : longer;
  memcpy(table->record[0], record.data(), record.size());
}
