// MATCH ... AGAINST: the server begins a search before it reads rows, then reads those found in the
// order of their ranks, or asks for the rank of a row that it has come by otherwise.

#include "handler/ha_shale.h"

#include <ha_partition.h>

#include "engine/errors.h"
#include "txn/trx.h"
#include "words/found_words.h"
#include "words/word_codec.h"

using namespace shale_sql;

namespace {

// The error is told.
constexpr int kTold = HA_ERR_GENERIC;

float find_relevance(FT_INFO *info, uchar *, uint) {
  const auto *found = static_cast<FoundWords *>(info);
  const float rank = found->rank_of(*found->last);
  return rank == 0 || !found->still_matches || found->still_matches() ? rank : 0;
}

void close_search(FT_INFO *info) { delete static_cast<FoundWords *>(info); }

float get_relevance(FT_INFO *info) { return static_cast<FoundWords *>(info)->rank; }

void reinit_search(FT_INFO *info) { static_cast<FoundWords *>(info)->next = 0; }

_ft_vft calls = {nullptr, find_relevance, close_search, get_relevance, reinit_search};

}  // namespace

// A row as the search sees it. Of one that locks, as it is by now, without a lock: rows are locked
// as they are read. Its texts are in `value`.
int ha_shale::row_of_search(std::string_view primary_key, std::string *value,
                            std::vector<uchar> *record, bool *found) {
  std::string_view bytes;
  Cursor newest;
  int error = 0;
  if (lock_mode() == SHALE_LOCK_NONE) {
    error = get_value(primary(), primary_key, HA_ERR_KEY_NOT_FOUND, &bytes);
    *found = error == 0;
  } else {
    shale_txn *txn = nullptr;
    const std::string end = std::string(primary_key) + '\0';
    if ((error = note(trx()->get(&txn)))) return error;
    error = note(newest.begin_newest(txn, primary().tree, primary_key, true, end));
    if (error == 0) error = note(newest.step(txn, false, found));
    bytes = newest.value();
  }
  if (error != 0 || !*found) return error == HA_ERR_KEY_NOT_FOUND ? 0 : error;
  record->resize(table->s->reclength);
  value->assign(bytes);
  return rows_->unpack(primary_key, *value, nullptr, record->data()) ? 0 : damaged_row();
}

// The texts of a row.
int ha_shale::text_of_row(const WordCodec &codec, std::string_view primary_key, std::string *text,
                          std::vector<size_t> *begins, bool *found) {
  std::string value;
  std::vector<uchar> record;
  if (int error = row_of_search(primary_key, &value, &record, found)) return error;
  if (*found) codec.text_of(record.data(), text, begins);
  return 0;
}

// The row that was read last, and is locked now, may have got other words since the search.
int ha_shale::still_matches(const FoundWords &search, bool *matches) {
  const Index &index = of_number(search.index);
  const auto &codec = static_cast<const WordCodec &>(*index.many);
  std::string value;
  std::vector<uchar> record;
  *matches = false;
  bool found = false;
  int error = row_of_search(last_.primary, &value, &record, &found);
  if (error != 0 || !found) return error;
  ManyEntries entries;
  codec.pack(record.data(), last_.primary, &entries);
  WordReader reader;
  reader.forms = &codec.forms();
  reader.of_row = &entries;
  reader.row = last_.primary;
  THD *thd = ha_thd();
  reader.is_killed = [thd] { return thd_killed(thd) != 0; };
  reader.text_of = [&](std::string_view, std::string *text, std::vector<size_t> *begins,
                       bool *is_there) -> Error {
    *is_there = true;
    codec.text_of(record.data(), text, begins);
    return 0;
  };
  return note(WordSearch(reader, 1).matches(search.query, matches));
}

int ha_shale::search_words(uint flags, const Index &index, std::string_view text,
                           FoundWords *found) {
  const auto &codec = static_cast<const WordCodec &>(*index.many);
  THD *thd = ha_thd();
  Trx *trx = this->trx();
  WordQuery &query = found->query;
  switch (parse_words(codec.forms(), text, (flags & FT_BOOL) != 0, &query)) {
    case WordSyntax::kBad:
      my_printf_error(ER_PARSE_ERROR,
                      "syntax error in the text of MATCH ... AGAINST: an operator without a word, "
                      "or a parenthesis without the other",
                      MYF(0));
      return kTold;
    case WordSyntax::kTooDeep:
      // The number that InnoDB gives.
      my_printf_error(HA_ERR_OUT_OF_MEM,
                      "the text of MATCH ... AGAINST has too many parentheses", MYF(0));
      return kTold;
    default: break;
  }
  // Nothing is read, and so nothing is as of a snapshot.
  if (query.leaves.empty()) return 0;
  WordReader reader;
  if (int error = note(trx->get(&reader.txn))) return error;
  if (int error = begin_plain_read(trx)) return error;
  reader.forms = &codec.forms();
  reader.tree = index.tree;
  // As InnoDB: nothing is locked by a search, but rows as they are read.
  reader.newest = lock_mode() != SHALE_LOCK_NONE;
  reader.is_killed = [thd] { return thd_killed(thd) != 0; };
  reader.text_of = [&](std::string_view primary_key, std::string *of_row,
                       std::vector<size_t> *begins, bool *is_there) -> Error {
    return text_of_row(codec, primary_key, of_row, begins, is_there);
  };
  if (scan_.may_be_outdated) {
    reader.is_outdated = [&](std::string_view key, std::string_view primary_key,
                             bool *outdated) -> Error {
      return is_outdated(index, key, primary_key, outdated);
    };
  }
  // What an expansion adds has other words than the query.
  if (reader.newest && (flags & FT_EXPAND) == 0) {
    found->still_matches = [this, found] {
      bool matches = false;
      if (int error = still_matches(*found, &matches)) {
        print_error(tell_server(ha_thd(), error), MYF(0));
        return false;
      }
      return matches;
    };
  }
  uint64_t rows = 0;
  Error counted = shared_->counts.rows(shared_->trees, *shared_->changes, &rows);
  if (int error = note(std::move(counted))) return error;
  WordSearch search(reader, rows);
  return note(search.run(query, (flags & FT_EXPAND) != 0, &found->matches));
}

FT_INFO *ha_shale::ft_init_ext(uint flags, uint number, String *text) {
  if (number >= table->s->keys || (table->key_info[number].flags & HA_FULLTEXT) == 0) {
    my_error(ER_TABLE_HAS_NO_FT, MYF(0));
    return nullptr;
  }
  const Index &index = of_number(number);
  auto found = std::make_unique<FoundWords>();
  found->please = &calls;
  found->last = &last_.primary;
  found->index = number;
  const int error = search_words(flags, index, {text->ptr(), text->length()}, found.get());
  if (error != 0) {
    if (error != kTold) print_error(tell_server(ha_thd(), error), MYF(0));
    return nullptr;
  }
  found->sort();
  return found.release();
}

// By which search rows are read. The server leaves with each partition the search that was begun
// last, whichever of several MATCH it has chosen for the whole table.
FT_INFO *ha_shale::search_to_read() const {
  if (table->part_info == nullptr || table->file == this) return ft_handler;
  const auto *chosen = reinterpret_cast<st_partition_ft_info *>(table->file->ft_handler);
  if (chosen == nullptr) return ft_handler;
  for (uint part = 0; part < table->part_info->get_tot_partitions(); part++) {
    FT_INFO *one = chosen->part_ft_info[part];
    if (one != nullptr && static_cast<FoundWords *>(one)->last == &last_.primary) return one;
  }
  return ft_handler;
}

int ha_shale::ft_init() {
  ft_handler = search_to_read();
  if (ft_handler != nullptr) static_cast<FoundWords *>(ft_handler)->next = 0;
  return rnd_init(false);
}

int ha_shale::ft_read(uchar *buf) {
  auto *found = static_cast<FoundWords *>(ft_handler);
  if (found == nullptr) return HA_ERR_END_OF_FILE;
  while (found->next < found->by_rank.size()) {
    const WordMatch &match = found->matches[found->by_rank[found->next++]];
    last_.primary.assign(match.primary);
    found->rank = match.rank;
    forget_locked();
    int error = read_by_primary(last_.primary, buf, HA_ERR_KEY_NOT_FOUND);
    // It is gone since the search, or locked by others.
    if (error == HA_ERR_KEY_NOT_FOUND) continue;
    bool matches = true;
    if (error == 0 && found->still_matches) error = still_matches(*found, &matches);
    if (error != 0 || matches) return finish_read(error, buf);
    unlock_row();
  }
  return finish_read(HA_ERR_END_OF_FILE, buf);
}
