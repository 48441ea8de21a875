// What the optimizer and SHOW TABLE STATUS are told.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "handler/index_sample.h"
#include "txn/trx.h"

#include <algorithm>
#include <cmath>
#include <sys/stat.h>

using namespace shale_sql;

namespace {

// Blocks that the server's costs count in, as InnoDB's pages.
constexpr uint kBlockBytes = 16384;
// What any other way is said to have where one row is known by its primary key.
constexpr ha_rows kMoreThanOne = 100;
// What a row and a text column take at least and mostly, if nothing is known of them.
constexpr uint kRowOverhead = 16;
constexpr uint kTextGuess = 32;

// What a row takes before it is compressed, by its definition.
uint guess_row_bytes(const TABLE *table) {
  uint bytes = kRowOverhead;
  for (Field **field = table->field; *field != nullptr; field++) {
    if (!(*field)->stored_in_db()) continue;
    bool varies = ((*field)->flags & BLOB_FLAG) != 0 || (*field)->real_type() == MYSQL_TYPE_VARCHAR;
    uint length = (*field)->pack_length();
    bytes += varies ? std::min(length, kTextGuess) : length;
  }
  return bytes;
}

}  // namespace

// Rows are stored in one way. What the table was made with is what is shown, and what EXCHANGE
// PARTITION holds against the other table.
enum row_type ha_shale::get_row_type() const {
  switch (table_share->row_type) {
    case ROW_TYPE_REDUNDANT:
    case ROW_TYPE_COMPACT:
    case ROW_TYPE_COMPRESSED:
      return table_share->row_type;
    default:
      return ROW_TYPE_DYNAMIC;
  }
}

int ha_shale::info(uint what) {
  TableSize size;
  const bool has_size = (what & HA_STATUS_VARIABLE) != 0;
  if (has_size) {
    if (int error = info_of_size(what, &size)) return error;
  }
  // Partitions share what the optimizer looks at. Once all are open (they have a `ref` then) the
  // server asks the largest one for it. What it does not ask for is not looked up, but of one that
  // is opened later and has more rows than they.
  const bool is_part = table->part_info != nullptr;
  bool tells = !is_part || (what & HA_STATUS_CONST) != 0;
  if (is_part && (what & HA_STATUS_OPEN) != 0) {
    const handler *all = table->file;
    tells = all != nullptr && all->ref != nullptr && stats.records > all->stats.records;
  }
  if ((what & (HA_STATUS_VARIABLE | HA_STATUS_CONST)) != 0 && tells) {
    look_if_due(has_size ? &size : nullptr);
  }
  const bool changed = !is_part && shown_.statistics_version != shared_->statistics_version();
  if (tells && ((what & HA_STATUS_CONST) != 0 || changed)) fill_rows_per_key();
  if ((what & HA_STATUS_CONST) != 0) {
    stats.max_data_file_length = stats.max_index_file_length = ULONGLONG_MAX;
    stats.block_size = kBlockBytes;
  }
  if ((what & HA_STATUS_TIME) != 0) {
    MY_STAT definition;
    std::string file = shared_->path + reg_ext;
    // Also of a partition: then there is no such file, and no time.
    if (my_stat(file.c_str(), &definition, MYF(0)) != nullptr) {
      stats.create_time = static_cast<ulong>(definition.st_ctime);
    }
    stats.update_time = static_cast<ulong>(shared_->counts.changed_at());
  }
  if ((what & HA_STATUS_AUTO) != 0 && table->found_next_number_field != nullptr) {
    if (int error = look_up_number()) return error;
    stats.auto_increment_value = shared_->next_number.load();
  }
  if ((what & HA_STATUS_ERRKEY) != 0) errkey = trx()->duplicate();
  return 0;
}

int ha_shale::info_of_size(uint what, TableSize *found) {
  bool renew = (what & HA_STATUS_TIME) != 0;
  Error asked = shared_->counts.get(shared_->trees, *shared_->changes, renew, found);
  if (int error = note(std::move(asked))) return error;
  const TableSize &size = *found;
  stats.data_file_length = size.data_bytes;
  stats.index_file_length = size.index_bytes;
  stats.records = size.rows;
  stats.deleted = 0;
  stats.delete_length = 0;
  stats.check_time = 0;
  stats.mean_rec_length = size.rows == 0 ? 0 : static_cast<ulong>(size.data_bytes / size.rows);
  stats.mrr_length_per_rec = ref_length + sizeof(void *);
  // Commits are going on: none is not for certain. Who asks for the time shows it to somebody.
  if (stats.records == 0 && (what & (HA_STATUS_TIME | HA_STATUS_OPEN)) == 0) stats.records = 1;
  if (shown_.row_bytes_guess == 0) shown_.row_bytes_guess = guess_row_bytes(table);
  return 0;
}

// `known` is the size that this call has asked for already: it takes a mutex that all share.
void ha_shale::look_if_due(const TableSize *known) {
  if (table->s->keys == 0) return;
  TableSize size;
  // What cannot be read now is for those to tell who want the rows.
  if (known == nullptr &&
      note(shared_->counts.get(shared_->trees, *shared_->changes, false, &size)) != 0) {
    return;
  }
  // Entries of rows that are not committed are not seen by a look.
  const uint64_t rows = known != nullptr ? known->committed : size.committed;
  if (rows == 0) return;
  if (std::unique_lock<std::mutex> due = shared_->statistics_are_due(rows)) {
    look_at_indexes(kQuick);
  }
}

void ha_shale::count_change(int rows) {
  shared_->counts.changed(rows, ha_thd()->query_start());
  if (rows != 0 && !load_.copy) trx()->note_rows(shared_->changes, rows);
  engine().rows.add(rows > 0, rows == 0, rows < 0);
}

// Rows for each value of the first columns of each index, to where the optimizer looks for them.
void ha_shale::fill_rows_per_key() {
  shown_.statistics_version = shared_->statistics_version();
  std::vector<IndexStatistics> known = shared_->statistics();
  double rows = static_cast<double>(std::max<ha_rows>(stats.records, 1));
  for (uint number = 0; number < table->s->keys; number++) {
    KEY &key = table->key_info[number];
    // Of words and shapes it is not known how many are equal, and InnoDB tells no number either.
    if ((key.flags & (HA_FULLTEXT | HA_SPATIAL)) != 0) continue;
    const IndexStatistics *found = nullptr;
    for (const IndexStatistics &index : known) {
      if (index.name == key.name.str) found = &index;
    }
    uint parts = key.user_defined_key_parts;
    bool unique = (key.flags & HA_NOSAME) != 0 && (key.flags & HA_NULL_PART_KEY) == 0;
    for (uint part = 0; part < key.ext_key_parts; part++) {
      // Behind the index's own columns is the primary key, of which only the whole is known.
      uint own = std::min(part, parts - 1);
      double each;
      if ((unique && part + 1 >= parts) || (part >= parts && part + 1 == key.ext_key_parts)) {
        each = 1;
      } else if (found != nullptr && own < found->rows_per_key.size()) {
        each = found->rows_per_key[own];
      } else {
        // Never looked at: each part tells apart as many as the next.
        each = std::pow(rows, 1.0 - (own + 1.0) / (parts + 1.0));
      }
      key.rec_per_key[part] = static_cast<ulong>(std::max(std::round(each), 1.0));
    }
  }
}

// Finds the statistics of all indexes. Another statement may do it at the same time.
int ha_shale::look_at_indexes(const SampleSize &size) {
  THD *thd = ha_thd();
  auto stop = [thd] { return thd != nullptr && thd_kill_level(thd) != THD_IS_NOT_KILLED; };
  std::vector<IndexStatistics> found;
  TableSize now;
  Error asked = shared_->counts.get(shared_->trees, *shared_->changes, false, &now);
  if (int error = note(std::move(asked))) return error;
  found.push_back({"", {static_cast<double>(std::max<uint64_t>(now.committed, 1))}});
  for (uint number = 0; number < table->s->keys; number++) {
    const KEY &key = table->key_info[number];
    const Index &index = of_number(number);
    // Entries of words and of cells are not asked for by values of columns.
    if (index.many != nullptr || index.is_spatial()) continue;
    IndexStatistics statistics;
    statistics.name = key.name.str;
    if (int error = note(sample_index(index.tree, *index.codec, key.user_defined_key_parts, size,
                                      stop, &statistics.rows_per_key))) {
      return error;
    }
    found.push_back(std::move(statistics));
  }
  shared_->set_statistics(std::move(found));
  return 0;
}

int ha_shale::analyze(THD *thd, HA_CHECK_OPT *) {
  int error = look_at_indexes(kThorough);
  if (error == 0) error = note(shared_->keep_statistics());
  if (error == 0) error = info(HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_TIME);
  if (error == 0) return HA_ADMIN_OK;
  if (error == HA_ERR_ABORTED_BY_USER) return HA_ADMIN_FAILED;
  push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG, "SHALE: %s",
                      trx()->last_error().text().c_str());
  return error == HA_ERR_CRASHED_ON_USAGE || error == kErrDamagedRow ? HA_ADMIN_CORRUPT
                                                                     : HA_ADMIN_FAILED;
}

// Whether the statement changes a row that the server knows by its whole primary key, which is the
// first that it looks at: it takes that way, whatever others would cost.
bool ha_shale::changes_one_row(uint number) const {
  const int command = thd_sql_command(ha_thd());
  const uint primary = table->s->primary_key;
  if ((command != SQLCOM_UPDATE && command != SQLCOM_DELETE) || number == primary ||
      primary == MAX_KEY || !table->opt_range_keys.is_set(primary)) {
    return false;
  }
  const TABLE::OPT_RANGE &range = table->opt_range[primary];
  return range.ranges == 1 && range.rows <= 1;
}

// Whether the statement has no other way than this index: it reads one table, by an index that it
// names itself, and without anything that could go by groups. Then how many rows a range has
// decides nothing but what is shown of the plan.
static bool is_only_way(THD *thd, TABLE *table, uint number) {
  LEX *lex = thd->lex;
  st_select_lex *select = lex->first_select_lex();
  key_map *ways[] = {&table->keys_in_use_for_query, &table->keys_in_use_for_order_by};
  for (key_map *way : ways) {
    if (!way->is_set(number) || way->bits_set() != 1) return false;
  }
  const bool shown = lex->describe != 0 || lex->analyze_stmt || thd->trace_started() ||
                     (thd->variables.log_slow_verbosity & LOG_SLOW_VERBOSITY_EXPLAIN) != 0;
  // A statement that seems to read too many rows is refused (max_join_size).
  const bool any_size = (thd->variables.option_bits & OPTION_BIG_SELECTS) != 0;
  const bool alone = lex->query_tables != nullptr && lex->query_tables->next_global == nullptr &&
                     lex->all_selects_list == select && select->next_select_in_list() == nullptr;
  const bool grouped = select->group_list.elements != 0 || select->agg_func_used() ||
                       (select->options & SELECT_DISTINCT) != 0;
  return table->force_index && table->force_index_order && alone && any_size && !shown &&
         !grouped;
}

// How many rows a range of an index usually has, by its statistics: a third of those with the same
// first columns, if it is narrower than these, and a thousandth of the table at most. So several
// ranges are less than those with the same first columns, and than the whole index, as they are.
static ha_rows usual_rows(const KEY &key, const ha_rows all, const key_range *low,
                          const key_range *high) {
  uint equal = 0, bounds = std::max(low == nullptr ? 0 : my_count_bits(low->keypart_map),
                                    high == nullptr ? 0 : my_count_bits(high->keypart_map));
  const key_part_map both =
      low == nullptr || high == nullptr ? 0 : low->keypart_map & high->keypart_map;
  for (uint at = 0; equal < key.user_defined_key_parts && (both >> equal & 1) != 0; equal++) {
    const uint length = key.key_part[equal].store_length;
    if (memcmp(low->key + at, high->key + at, length) != 0) break;
    at += length;
  }
  const double most = static_cast<double>(all) / 1000;
  const double same = equal == 0 ? most : std::min<double>(key.actual_rec_per_key(equal - 1), most);
  return std::max<ha_rows>(static_cast<ha_rows>(equal < bounds ? same / 3 : same), 1);
}

ha_rows ha_shale::records_in_range(uint number, const key_range *low, const key_range *high,
                                   page_range *) {
  const Index &index = of_number(number);
  if (index.is_spatial()) return cells_in_range(index, low);
  if (changes_one_row(number)) return kMoreThanOne;
  if (is_only_way(ha_thd(), table, number)) {
    return usual_rows(table->key_info[number], stats.records, low, high);
  }
  std::string from, to;
  if (low != nullptr) {
    index.codec->pack_tuple(low->key, low->keypart_map, &from);
    if (low->flag == HA_READ_AFTER_KEY && !next_after_prefix(&from)) return 1;
  }
  bool bounded = high != nullptr;
  if (bounded) {
    index.codec->pack_tuple(high->key, high->keypart_map, &to);
    if (high->flag != HA_READ_BEFORE_KEY) bounded = next_after_prefix(&to);
  }
  // None is not for certain: a reader's snapshot may be older than what is counted here, and what
  // it has written itself is not counted.
  if (bounded && from >= to) return 1;
  uint64_t rows = 0;
  const char *end = bounded ? to.data() : nullptr;
  ErrorHandle error(shale_tree_estimate(index.tree, from.data(), from.size(), end, to.size(), 0,
                                        &rows, nullptr, nullptr));
  if (error) return HA_POS_ERROR;
  return std::max<ha_rows>(rows, 1);
}

// In blocks, as if nothing were compressed: the time goes into rows, and the optimizer's choices
// should not change with a codec, or when a table is flushed. In whole ones, as of InnoDB: where
// tables of as many rows differ a little in it, the optimizer leaves out no order to join them in,
// and of thirty tables there are too many.
double ha_shale::scan_time() {
  double guess = static_cast<double>(stats.records) * shown_.row_bytes_guess;
  double bytes = std::max(guess, static_cast<double>(stats.data_file_length));
  return std::floor(bytes / kBlockBytes) + 1;
}

double ha_shale::read_time(uint index, uint ranges, ha_rows rows) {
  if (index != table->s->primary_key) return handler::read_time(index, ranges, rows);
  if (rows <= 2) return static_cast<double>(rows);
  // Rows of the primary key lie together.
  double all = static_cast<double>(std::max<ha_rows>(stats.records, rows));
  return ranges + static_cast<double>(rows) / all * scan_time();
}
