// Searches in SPATIAL indexes: the entries of cells that may match, held against the rectangle that
// was asked for by what they have themselves. The row of those that match is read then, which the
// server compares by the whole geometry.
//
// A plain read is one scan of the tree, which leaps to where the next match may be. One that locks
// goes through ranges, one after the other: it locks the rows and the gaps of each, also where
// nobody has a row. (InnoDB locks the rectangle that was asked for. Both let nobody add a row that
// matches; here a row nearby may have to wait, too.)

#include "handler/ha_shale.h"

#include "codec/cells.h"
#include "codec/geometry.h"
#include "engine/errors.h"
#include "txn/trx.h"

using namespace shale_sql;

namespace {

// Entries that are looked at before it is leapt over those that are out of the question: a step
// costs less than a look-up.
constexpr unsigned kStepsBeforeLeap = 8;
constexpr unsigned kStepsBetweenChecks = 1024;
constexpr size_t kFirstAhead = 8;
// For an estimate; and how many of those are kept for the reads that follow.
constexpr unsigned kStepsOfEstimate = 256;
constexpr size_t kMostFound = 4;

bool relation_of(enum ha_rkey_function how, Relation *relation) {
  switch (how) {
    case HA_READ_MBR_INTERSECT: *relation = Relation::kMeets; return true;
    // What the window contains.
    case HA_READ_MBR_CONTAIN: *relation = Relation::kIsWithin; return true;
    case HA_READ_MBR_WITHIN: *relation = Relation::kContains; return true;
    case HA_READ_MBR_EQUAL: *relation = Relation::kEquals; return true;
    // A replica looks for a row by whatever index its table has.
    case HA_READ_KEY_EXACT: *relation = Relation::kEquals; return true;
    case HA_READ_MBR_DISJOINT: *relation = Relation::kIsApart; return true;
    default: return false;
  }
}

bool has_mbr(std::string_view value) { return value.size() >= kMbrBytes; }

}  // namespace

// What an estimate has found, if it came to the end: the read that follows need not search again.
struct ha_shale::FoundCells {
  const Index *index;
  std::string window;
  enum ha_rkey_function how;
  uint64_t of, actions;  // as in Scan
  std::vector<std::pair<std::string, std::string>> entries;
};

struct ha_shale::CellScan {
  CellScan(const Mbr &window, Relation relation) : search(window, relation) {}

  CellSearch search;
  std::string next;  // the cell at which a match may be
  std::shared_ptr<FoundCells> found;  // instead of a scan
  size_t at_found = 0;
  // Of a scan that locks.
  std::vector<CellRange> ranges;
  size_t at_range = 0;
};

int ha_shale::index_read_cells(const Index &index, uchar *buf, const uchar *tuple,
                               enum ha_rkey_function how) {
  Relation relation;
  // HANDLER asks for an order that there is none of.
  if (!relation_of(how, &relation)) return finish_read(HA_ERR_KEY_NOT_FOUND, buf);
  end_scan();
  scan_.index = &index;
  scan_.cells = std::make_shared<CellScan>(mbr_at(tuple), relation);
  if (!take_found(index, tuple, how)) {
    if (int error = open_cells(index)) return finish_read(error, buf);
  }
  read_ahead();
  // All that matches will be wanted, mostly.
  if (ahead_.most != 0) ahead_.most = kFirstAhead;
  int error = step(buf, false);
  return finish_read(error == HA_ERR_END_OF_FILE ? HA_ERR_KEY_NOT_FOUND : error, buf);
}

// Takes what the statement's estimate has found, once.
bool ha_shale::take_found(const Index &index, const uchar *window, enum ha_rkey_function how) {
  if (lock_mode() != SHALE_LOCK_NONE || asked_.skips_locked) return false;
  Trx *trx = this->trx();
  const std::string_view wanted(reinterpret_cast<const char *>(window), kMbrBytes);
  for (auto at = found_cells_.begin(); at != found_cells_.end(); at++) {
    const FoundCells &found = **at;
    if (found.index != &index || found.window != wanted || found.how != how) continue;
    if (found.of != trx->ended() || found.actions != trx->actions_on(shared_.get())) continue;
    scan_.trx = trx;
    scan_.of = found.of;
    scan_.actions = found.actions;
    scan_.gap = Gap::kNone;
    scan_.lower.clear();
    scan_.upper.clear();
    scan_.may_be_outdated = trx->rewrote();
    scan_.cells->next.assign(kCellBytes, '\0');
    scan_.cells->found = std::move(*at);
    found_cells_.erase(at);
    return true;
  }
  return false;
}

int ha_shale::open_cells(const Index &index) {
  CellScan *cells = scan_.cells.get();
  std::string lower, upper;
  if (lock_mode() == SHALE_LOCK_NONE) {
    // Without any cell in question the scan ends at once.
    if (!cells->search.next(std::string(kCellBytes, '\0'), &cells->next)) cells->next.clear();
    lower = cells->next;
  } else {
    uint64_t there = 0;
    if (int error = find_classes(index, &there)) return error;
    cells->ranges = cells->search.ranges(there);
    if (!cells->ranges.empty()) {
      lower = cells->ranges[0].lower;
      upper = cells->ranges[0].upper;
    }
  }
  return begin_scan_of_cells(index, std::move(lower), std::move(upper));
}

// The search goes on in another scan.
int ha_shale::begin_scan_of_cells(const Index &index, std::string lower, std::string upper) {
  std::shared_ptr<CellScan> cells = scan_.cells;
  if (int error = begin_scan(index, lower, upper)) return error;
  scan_.cells = std::move(cells);
  return 0;
}

// The classes that anybody has, uncommitted entries left out: those of others are as well locked in
// the range that a class has as a whole.
int ha_shale::find_classes(const Index &index, uint64_t *there) {
  shale_scan *begun = nullptr;
  int error = consume_error(
      shale_scan_new(index.tree, nullptr, nullptr, 0, nullptr, 0, true, &begun));
  ScanHandle scan(begun);
  for (unsigned cell_class = 0; error == 0 && cell_class < kCellClasses; cell_class++) {
    const std::string first = first_cell(cell_class);
    error = consume_error(shale_scan_move(begun, SHALE_AT_OR_AFTER, first.data(), first.size()));
    if (error != 0 || !at_row(begun)) break;
    size_t key_bytes = 0;
    const void *key = shale_scan_key(begun, &key_bytes);
    if (key_bytes < kCellBytes) return damaged_entry(index);
    cell_class = class_of_cell({static_cast<const char *>(key), key_bytes});
    *there |= uint64_t{1} << (cell_class % 64);
  }
  return error;
}

// To the next entry that matches.
int ha_shale::next_in_cells(shale_txn *txn, bool *found) {
  return lock_mode() == SHALE_LOCK_NONE ? leap_through_cells(txn, found)
                                        : lock_cells(txn, found);
}

// The scan begins anew after its transaction has ended, and after an action of a foreign key.
int ha_shale::step_of_cells(shale_txn *txn, bool *found) {
  if (is_scan_current()) return note(scan_.cursor.step(txn, false, found));
  const std::string at(scan_.cursor.key());
  std::string lower = at.empty() ? scan_.lower : at, upper = scan_.upper;
  if (int error = begin_scan_of_cells(*scan_.index, std::move(lower), std::move(upper))) {
    return error;
  }
  return note(at.empty() ? scan_.cursor.step(txn, false, found)
                         : scan_.cursor.step_from(txn, at, false, found));
}

int ha_shale::leap_through_cells(shale_txn *txn, bool *found) {
  CellScan &cells = *scan_.cells;
  *found = false;
  if (cells.next.empty()) return 0;
  // To the end of this function: the cursor is at one of its entries.
  const std::shared_ptr<FoundCells> kept = cells.found;
  if (kept != nullptr) {
    if (is_scan_current()) {
      *found = cells.at_found < kept->entries.size();
      if (!*found) return 0;
      const auto &[key, value] = kept->entries[cells.at_found++];
      scan_.cursor.show(key, value);
      return 0;
    }
    cells.found.reset();
  }
  if (int error = step_of_cells(txn, found)) return error;
  for (unsigned steps = 0, outside = 0; *found; steps++) {
    const std::string_view key = scan_.cursor.key();
    if (key.size() < kCellBytes || !has_mbr(scan_.cursor.value())) {
      return damaged_entry(*scan_.index);
    }
    const std::string_view cell = key.substr(0, kCellBytes);
    bool leaps = false;
    if (cell >= cells.next) {
      if (!cells.search.next(cell, &cells.next)) {
        *found = false;
        return 0;
      }
      outside = 0;
      leaps = cell[0] != cells.next[0];
    }
    if (cell == cells.next) {
      if (cells.search.matches(mbr_at(bytes_of(scan_.cursor.value())))) return 0;
    } else if (++outside == kStepsBeforeLeap || leaps) {
      outside = 0;
      if (int error = note(scan_.cursor.seek(txn, cells.next, found))) return error;
      continue;
    }
    if (steps % kStepsBetweenChecks == 0 && thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
    if (int error = note(scan_.cursor.step(txn, false, found))) return error;
  }
  return 0;
}

int ha_shale::lock_cells(shale_txn *txn, bool *found) {
  *found = false;
  for (unsigned steps = 1; scan_.cells->at_range < scan_.cells->ranges.size(); steps++) {
    if (steps % kStepsBetweenChecks == 0 && thd_killed(ha_thd())) return HA_ERR_ABORTED_BY_USER;
    if (int error = step_of_cells(txn, found)) return error;
    CellScan &cells = *scan_.cells;
    if (*found) {
      if (!has_mbr(scan_.cursor.value())) return damaged_entry(*scan_.index);
      if (cells.search.matches(mbr_at(bytes_of(scan_.cursor.value())))) return 0;
      // The row that was shown last keeps its lock.
      forget_locked();
      note_locked(*scan_.index, scan_.cursor.key());
      unlock_row();
      continue;
    }
    if (++cells.at_range == cells.ranges.size()) return 0;
    CellRange range = cells.ranges[cells.at_range];
    if (int error = begin_scan_of_cells(*scan_.index, std::move(range.lower),
                                        std::move(range.upper))) {
      return error;
    }
  }
  return 0;
}

// How many rows match: as many as a short look finds; beyond it, in proportion to what was passed.
ha_rows ha_shale::cells_in_range(const Index &index, const key_range *window) {
  Relation relation;
  if (window == nullptr || !relation_of(window->flag, &relation)) return HA_POS_ERROR;
  if (relation == Relation::kIsApart) return std::max<ha_rows>(stats.records, 1);
  const CellSearch search(mbr_at(window->key), relation);
  std::string next;
  if (!search.next(std::string(kCellBytes, '\0'), &next)) return 1;
  ScanHandle scan;
  if (begin_estimate(index, &scan) != 0) return HA_POS_ERROR;
  shale_scan *begun = scan.get();
  Trx *trx = this->trx();
  auto found = std::make_shared<FoundCells>();
  found->index = &index;
  found->window.assign(reinterpret_cast<const char *>(window->key), kMbrBytes);
  found->how = window->flag;
  found->of = trx->ended();
  found->actions = trx->actions_on(shared_.get());
  uint64_t matches = 0;
  if (consume_error(shale_scan_move(begun, SHALE_AT_OR_AFTER, next.data(), next.size()))) {
    return HA_POS_ERROR;
  }
  for (unsigned steps = 0, outside = 0; at_row(begun); steps++) {
    size_t key_bytes = 0, value_bytes = 0;
    const void *key = shale_scan_key(begun, &key_bytes), *value = nullptr;
    if (consume_error(shale_scan_value(begun, &value, &value_bytes))) return HA_POS_ERROR;
    if (key_bytes < kCellBytes || value_bytes < kMbrBytes) return HA_POS_ERROR;
    const std::string_view cell(static_cast<const char *>(key), kCellBytes);
    if (cell > next) outside = 0;
    if (cell >= next && !search.next(cell, &next)) break;
    if (cell == next && search.matches(mbr_at(static_cast<const uchar *>(value)))) {
      matches++;
      found->entries.emplace_back(std::string(static_cast<const char *>(key), key_bytes),
                                  std::string(static_cast<const char *>(value), value_bytes));
    }
    if (steps == kStepsOfEstimate) return estimate_of_rest(index, search, next, matches, steps);
    const bool leaps =
        cell < next && (cell[0] != next[0] || ++outside == kStepsBeforeLeap);
    if (leaps) outside = 0;
    if (consume_error(shale_scan_move(begun, leaps ? SHALE_AT_OR_AFTER : SHALE_NEXT, next.data(),
                                      leaps ? next.size() : 0))) {
      return HA_POS_ERROR;
    }
  }
  if (lock_mode() == SHALE_LOCK_NONE && found_cells_.size() < kMostFound) {
    found_cells_.push_back(std::move(found));
  }
  return std::max<ha_rows>(matches, 1);
}

// A scan as the statement's own, if that locks nothing.
int ha_shale::begin_estimate(const Index &index, ScanHandle *scan) {
  shale_scan *begun = nullptr;
  int error = 0;
  if (lock_mode() != SHALE_LOCK_NONE) {
    error = consume_error(
        shale_scan_new(index.tree, nullptr, nullptr, 0, nullptr, 0, true, &begun));
  } else {
    shale_txn *txn = nullptr;
    if ((error = note(trx()->get(&txn)))) return error;
    if ((error = begin_plain_read(trx()))) return error;
    error = consume_error(
        shale_txn_scan(txn, index.tree, false, nullptr, 0, nullptr, 0, true, &begun));
  }
  scan->reset(begun);
  return error;
}

// Of `steps` entries up to `from` so many match: of those in the rest of the ranges the same part
// is taken to.
ha_rows ha_shale::estimate_of_rest(const Index &index, const CellSearch &search,
                                   const std::string &from, uint64_t matches, unsigned steps) {
  double entries = 0;
  uint64_t there = 0;
  if (find_classes(index, &there) != 0) return HA_POS_ERROR;
  for (const CellRange &range : search.ranges(there)) {
    if (!range.upper.empty() && range.upper <= from) continue;
    const std::string &lower = std::max(range.lower, from);
    const char *end = range.upper.empty() ? nullptr : range.upper.data();
    uint64_t rows = 0;
    if (consume_error(shale_tree_estimate(index.tree, lower.data(), lower.size(), end,
                                          range.upper.size(), 0, &rows, nullptr, nullptr))) {
      return HA_POS_ERROR;
    }
    entries += static_cast<double>(rows);
  }
  const double share = static_cast<double>(std::max<uint64_t>(matches, 1)) / steps;
  return static_cast<ha_rows>(static_cast<double>(matches) + entries * share) + 1;
}

bool ha_shale::Index::lacks_geometry(const uchar *row) const {
  return is_spatial() && !codec->geometries()->has_geometry(row);
}

// As InnoDB refuses a row that it could not put into such an index: behind the `error` of the
// indexes before this one, a duplicate or a parent that is not there.
int ha_shale::geometry_is_missing(int error) {
  if (error != 0) return error;
  my_error(ER_CANT_CREATE_GEOMETRY_OBJECT, MYF(0));
  return HA_ERR_NULL_IN_SPATIAL;
}

// Of a row of a table that is loaded: what it meets is found at the end.
int ha_shale::check_geometries(const uchar *row) {
  for (const Index &index : indexes_) {
    if (index.lacks_geometry(row)) return geometry_is_missing(0);
  }
  return 0;
}
