// Multi-range read: a list of values (`id IN (...)`), or the keys of a join buffer (BKA: batched
// key access). Plain reads take the rows of many ranges together, in the order of the ranges:
// points of a unique index are looked up at once, entries of others are collected range by range,
// and then all their rows are read at once. What locks goes row by row, as it does outside of such
// a read.
//
// The order is always kept, so the optimizer may have it for ORDER BY too (HA_MRR_SORTED), and
// lists are read so whatever optimizer_switch says. `mrr=on` decides whether joins may use a
// buffer.

#include "handler/ha_shale.h"

#include "engine/errors.h"
#include "handler/search.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// Rows of the first turn: of a join buffer all will be wanted, of a list perhaps the first only.
constexpr size_t kFirstOfJoin = 64;
constexpr size_t kFirstOfList = 4;

}  // namespace

// Whether a read that is planned now will be one of this kind, and pays: ranges of the primary key
// give their rows by themselves.
bool ha_shale::may_read_together(uint index, uint flags) {
  THD *thd = ha_thd();
  return (flags & (HA_MRR_USE_DEFAULT_IMPL | HA_MRR_INDEX_ONLY)) == 0 &&
         (thd->variables.optimizer_switch & OPTIMIZER_SWITCH_MRR) != 0 &&
         lock_mode() == SHALE_LOCK_NONE && !of_number(index).is_spatial() &&
         !asked_.whole_rows && thd_sql_command(thd) == SQLCOM_SELECT &&
         (index != table->s->primary_key || (flags & HA_MRR_SINGLE_POINT) != 0);
}

ha_rows ha_shale::multi_range_read_info_const(uint index, RANGE_SEQ_IF *ranges, void *parameter,
                                              uint count, uint *bytes, uint *flags,
                                              Cost_estimate *cost) {
  bool together = may_read_together(index, *flags);
  ha_rows rows = handler::multi_range_read_info_const(index, ranges, parameter, count, bytes,
                                                      flags, cost);
  if (together && rows != HA_POS_ERROR) *flags &= ~HA_MRR_USE_DEFAULT_IMPL;
  return rows;
}

ha_rows ha_shale::multi_range_read_info(uint index, uint count, uint rows, uint parts, uint *bytes,
                                        uint *flags, Cost_estimate *cost) {
  bool together = may_read_together(index, *flags);
  // A join by a part of the primary key reads ranges of it.
  if (index == table->s->primary_key && parts < table->key_info[index].user_defined_key_parts) {
    together = false;
  }
  ha_rows error = handler::multi_range_read_info(index, count, rows, parts, bytes, flags, cost);
  if (together && error == 0) *flags &= ~HA_MRR_USE_DEFAULT_IMPL;
  return error;
}

int ha_shale::multi_range_read_explain_info(uint mode, char *text, size_t size) {
  static const char words[] = "Batched reads";
  if ((mode & HA_MRR_USE_DEFAULT_IMPL) != 0) return 0;
  size_t length = std::min(sizeof(words) - 1, size);
  memcpy(text, words, length);
  return static_cast<int>(length);
}

int ha_shale::multi_range_read_init(RANGE_SEQ_IF *ranges, void *parameter, uint count, uint mode,
                                    HANDLER_BUFFER *buffer) {
  end_scan();
  ranges_.together = reads_plainly();
  if (ranges_.together) {
    scan_.index = &of_number(active_index);
    scan_.is_of_prefix = false;
    // Ranges are bounds of the cursor.
    set_end_range(nullptr);
    bool of_list = (mode & HA_MRR_NO_ASSOCIATION) != 0;
    ahead_.most = !of_list ? kFirstOfJoin : std::max(count > 1 ? kFirstOfList : 1, first_ahead());
    if ((mode & HA_MRR_USE_DEFAULT_IMPL) == 0) {
      status_var_increment(ha_thd()->status_var.ha_mrr_init_count);
    }
  }
  return handler::multi_range_read_init(ranges, parameter, count, mode, buffer);
}

// Whether the join has no use for the entry that was just unpacked into the record: the condition
// needs columns of the tables before, which the server puts back where they were.
bool ha_shale::is_skipped(range_id_t range) {
  return ranges_.together && mrr_funcs.skip_index_tuple != nullptr &&
         mrr_funcs.skip_index_tuple(mrr_iter, range);
}

int ha_shale::multi_range_read_next(range_id_t *range) {
  if (!ranges_.together) {
    int error;
    do {
      error = handler::multi_range_read_next(range);
    } while (error == 0 && mrr_funcs.skip_index_tuple != nullptr &&
             mrr_funcs.skip_index_tuple(mrr_iter, *range));
    return error;
  }
  // The server times and counts its own calls only: so it asks by one of them (step_asked).
  ranges_.asked = range;
  ranges_.at_point = false;
  const int error = ha_index_next(table->record[0]);
  ranges_.asked = nullptr;
  // A point is counted by its key, and the end is no row.
  if (ranges_.at_point || error == HA_ERR_END_OF_FILE) ha_thd()->status_var.ha_read_next_count--;
  return error;
}

int ha_shale::step_asked(uchar *buf) { return finish_read(step_ranges(buf, ranges_.asked), buf); }

int ha_shale::step_ranges(uchar *buf, range_id_t *range) {
  for (;;) {
    if (ahead_.next < ahead_.rows.size()) {
      RowAhead &row = ahead_.rows[ahead_.next++];
      if (mrr_funcs.skip_record != nullptr &&
          mrr_funcs.skip_record(mrr_iter, row.range, nullptr)) {
        increment_statistics(&SSV::ha_read_next_count);
        continue;
      }
      if (row.value) {
        *range = row.range;
        ranges_.at_point = row.is_point;
        last_.primary = std::move(row.primary);
        return fill_from_primary(buf, last_.primary, row.bytes);
      }
      bool skip = false;
      // A point of the primary key may have no row.
      if (!is_primary(*scan_.index)) {
        if (int error = row_is_missing(*scan_.index, &skip)) return error;
      }
    } else if (ranges_.streaming) {
      bool shown = false;
      *range = mrr_cur_range.ptr;
      if (int error = stream(buf, &shown)) return error;
      if (shown) return 0;
    } else if (ahead_.ended != 0) {
      return ahead_.ended;
    } else {
      shale_txn *txn = nullptr;
      if (int error = note(trx()->get(&txn))) return error;
      if (int error = fill_ranges(buf, txn)) return error;
    }
  }
}

// The next row of a range of the primary key; none is shown if that has come to its end.
int ha_shale::stream(uchar *buf, bool *shown) {
  shale_txn *txn = nullptr;
  bool found = false, skip = false;
  if (int error = note(scan_.trx->get(&txn))) return error;
  if (int error = note(scan_.cursor.step(txn, false, &found))) return error;
  if (found) {
    if (int error = fill_row(buf, &skip)) return error;
  }
  ranges_.in_range = ranges_.streaming = found;
  *shown = found && !skip;
  return 0;
}

int ha_shale::fill_ranges(uchar *buf, shale_txn *txn) {
  if (int error = begin_plain_read(trx())) return error;
  ahead_.next = 0;
  ahead_.rows.clear();
  // What was found before the end, or before an error, comes first.
  while (ahead_.rows.size() < ahead_.most && ahead_.ended == 0 && !ranges_.streaming) {
    if (!ranges_.in_range) {
      bool ends = mrr_funcs.next(mrr_iter, &mrr_cur_range);
      ahead_.ended = ends ? HA_ERR_END_OF_FILE : begin_range(txn);
      continue;
    }
    int error = add_entries(buf, txn, mrr_cur_range.ptr);
    ranges_.in_range = error == 0;
    ahead_.ended = error == HA_ERR_END_OF_FILE ? 0 : error;
  }
  if (!is_primary(*scan_.index)) {
    if (int error = find_points(buf, txn)) return error;
  }
  if (int error = fetch_rows(txn)) return error;
  ahead_.grow();
  return 0;
}

// Adds the point that the next range is, or sets the cursor to its beginning.
int ha_shale::begin_range(shale_txn *txn) {
  const Index &index = *scan_.index;
  const key_range &start = mrr_cur_range.start_key, &end = mrr_cur_range.end_key;
  const KEY *key_info = index.number == MAX_KEY ? nullptr : &table->key_info[index.number];
  bool equal = (mrr_cur_range.range_flag & EQ_RANGE) != 0;
  increment_statistics(&SSV::ha_read_key_count);
  if (key_info != nullptr && equal && index.unique) {
    key_part_map whole = (key_part_map(1) << key_info->user_defined_key_parts) - 1;
    if ((start.keypart_map & whole) == whole && !has_null(*key_info, start.key, whole)) {
      RowAhead row{mrr_cur_range.ptr, {}, {}, nullptr, {}, true};
      index.codec->pack_tuple(start.key, whole, is_primary(index) ? &row.primary : &row.key);
      ahead_.rows.push_back(std::move(row));
      return 0;
    }
  }
  Search search;
  if (start.keypart_map != 0) {
    std::string from;
    index.codec->pack_tuple(start.key, start.keypart_map, &from);
    search_of(from, equal ? HA_READ_KEY_EXACT : start.flag, &search);
  }
  if (!search.exact && end.keypart_map != 0) {
    index.codec->pack_tuple(end.key, end.keypart_map, &search.upper);
    search.has_upper = end.flag == HA_READ_BEFORE_KEY || next_after_prefix(&search.upper);
  }
  if (!search.possible || (search.has_upper && search.lower >= search.upper)) return 0;
  ranges_.in_range = true;
  ranges_.streaming = is_primary(index);
  return open_cursor(index, search.lower, search.has_upper, search.upper);
}

// Reads the entries of the points of a unique secondary index, all at once, and leaves out those
// that are not there or do not meet the condition.
int ha_shale::find_points(uchar *buf, shale_txn *txn) {
  std::vector<std::string_view> keys;
  for (const RowAhead &row : ahead_.rows) {
    if (row.is_point) keys.push_back(row.key);
  }
  std::vector<BytesHandle> entries;
  int error = note(read_together(txn, scan_.index->tree, keys, &entries));
  if (error != 0 || keys.empty()) return error;
  size_t kept = 0, point = 0;
  for (RowAhead &row : ahead_.rows) {
    if (row.is_point) {
      const BytesHandle &entry = entries[point++];
      if (!entry) continue;
      bool skip = false;
      std::string_view primary_key;
      error = decode_entry(*scan_.index, buf, row.key, view_of(entry), &primary_key, &skip);
      if (error != 0) {
        ahead_.ended = error;
        break;
      }
      if (skip || is_skipped(row.range)) continue;
      row.primary.assign(primary_key);
    }
    if (&ahead_.rows[kept] != &row) ahead_.rows[kept] = std::move(row);
    kept++;
  }
  ahead_.rows.resize(kept);
  return 0;
}
