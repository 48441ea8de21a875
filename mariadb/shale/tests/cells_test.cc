// Cells of shapes: whatever a search asks for is where it looks, leaping or in ranges.

#include "check.h"
#include "codec/cells.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

namespace shale_sql {
namespace {

Chance chance;

double some_share() {
  return static_cast<double>(chance.next() >> 11) / static_cast<double>(uint64_t{1} << 53);
}

double some_number() {
  const double edges[] = {0,   -0.0,    1,       -1,       256,           -256, 255.99, 180,
                          -90, DBL_MAX, -DBL_MAX, DBL_MIN, std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};
  switch (chance.below(5)) {
    case 0: return edges[chance.below(14)];
    case 1: return static_cast<double>(chance.below(20)) - 10;
    case 2: return (some_share() - 0.5) * 360;
    case 3: return (some_share() - 0.5) * 1e-7;
    default: return std::ldexp(some_share() - 0.5, static_cast<int>(chance.below(1900)) - 900);
  }
}

Mbr some_mbr() {
  if (chance.one_in(50)) return {DBL_MAX, -DBL_MAX, DBL_MAX, -DBL_MAX};
  const double x = some_number(), y = some_number();
  if (chance.one_in(4)) return {x, x, y, y};
  const double width = std::fabs(some_number()), height = std::fabs(some_number());
  return chance.one_in(2) ? Mbr{x, x + width, y, y + height}
                          : Mbr{std::min(x, width), std::max(x, width), std::min(y, height),
                                std::max(y, height)};
}

Mbr some_window(const Mbr &mbr) {
  if (chance.one_in(4)) return some_mbr();
  if (chance.one_in(4)) return mbr;
  const double x = chance.one_in(2) ? mbr.x_min : mbr.x_max;
  const double y = chance.one_in(2) ? mbr.y_min : mbr.y_max;
  if (chance.one_in(3)) return {x, x, y, y};
  const double width = std::fabs(some_number());
  return chance.one_in(2) ? Mbr{x, x + width, y, y + width} : Mbr{x - width, x, y - width, y};
}

bool is_in(const std::vector<CellRange> &ranges, const std::string &key) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const CellRange &range) {
    return range.lower <= key && (range.upper.empty() || key < range.upper);
  });
}

void finds_what_matches() {
  uint64_t matches = 0;
  for (unsigned round = 0; round < 400000; round++) {
    const Mbr mbr = some_mbr(), window = some_window(mbr);
    const auto relation = static_cast<Relation>(chance.below(5));
    const CellSearch search(window, relation);
    std::string cell, next;
    append_cell(mbr, &cell);
    CHECK(cell.size() == kCellBytes);
    const bool has_next = search.next(cell, &next);
    CHECK(!has_next || next >= cell);
    const std::vector<CellRange> ranges = search.ranges(chance.next() | chance.next());
    for (size_t i = 1; i < ranges.size(); i++) {
      CHECK(ranges[i - 1].lower < ranges[i - 1].upper);
      CHECK(ranges[i - 1].upper < ranges[i].lower);
    }
    if (has_next) CHECK(is_in(ranges, next));
    if (!search.matches(mbr)) continue;
    // Rectangles without points meet nothing, though numbers may say so of such windows.
    if (!mbr.has_points() && relation != Relation::kIsWithin && window.has_points()) continue;
    matches++;
    CHECK(has_next && next == cell);
    CHECK(is_in(ranges, cell));
    // From the first cell on.
    std::string first;
    CHECK(search.next(std::string(kCellBytes, '\0'), &first) && first <= cell);
  }
  CHECK(matches > 50000);
}

// Each leap leads to the least cell of those in the box: none in between matches.
void leaps_over_nothing() {
  for (unsigned round = 0; round < 300; round++) {
    const double x = std::floor(some_share() * 8), y = std::floor(some_share() * 8);
    const Mbr window = {x, x + static_cast<double>(chance.below(4)), y,
                        y + static_cast<double>(chance.below(4))};
    const CellSearch search(window, Relation::kMeets);
    std::vector<std::string> matching;
    for (int i = 0; i < 12; i++) {
      for (int j = 0; j < 12; j++) {
        const Mbr point = {double(i), double(i), double(j), double(j)};
        std::string cell;
        append_cell(point, &cell);
        if (search.matches(point)) matching.push_back(cell);
      }
    }
    std::sort(matching.begin(), matching.end());
    for (int i = 0; i < 12; i++) {
      std::string cell, next;
      const double at_x = double(chance.below(12)), at_y = double(chance.below(12));
      append_cell({at_x, at_x, at_y, at_y}, &cell);
      const auto least = std::lower_bound(matching.begin(), matching.end(), cell);
      if (!search.next(cell, &next) || least == matching.end()) continue;
      CHECK(next <= *least);
    }
  }
}

// A strip around the globe has no ranges far from it.
void narrow_windows_have_narrow_ranges() {
  for (unsigned round = 0; round < 200; round++) {
    const double at = some_share() * 170 - 85, far = at > 0 ? at - 60 : at + 60;
    const bool is_flat = round % 2 == 0;
    const Mbr strip = is_flat ? Mbr{-180, 180, at, at + 0.01} : Mbr{at, at + 0.01, -180, 180};
    const CellSearch search(strip, Relation::kMeets);
    const std::vector<CellRange> ranges = search.ranges(1);
    CHECK(ranges.size() <= CellSearch::kSquaresMax + kCellClasses);
    unsigned inside = 0;
    for (int i = 0; i < 100; i++) {
      const double along = some_share() * 360 - 180;
      std::string cell;
      append_cell(is_flat ? Mbr{along, along, far, far} : Mbr{far, far, along, along}, &cell);
      inside += is_in(ranges, cell);
    }
    CHECK(inside < 10);
  }
}

void rectangles_come_back() {
  const Mbr mbr = {-1.5, 2, -0.0, 1e300};
  std::string bytes;
  append_mbr(mbr, &bytes);
  CHECK(bytes.size() == kMbrBytes);
  const Mbr back = mbr_at(bytes_of(bytes));
  CHECK(back.x_min == -1.5 && back.x_max == 2 && back.y_min == 0 && back.y_max == 1e300);
}

}  // namespace
}  // namespace shale_sql

int main() {
  shale_sql::finds_what_matches();
  shale_sql::leaps_over_nothing();
  shale_sql::narrow_windows_have_narrow_ranges();
  shale_sql::rectangles_come_back();
  printf("cells: ok\n");
}
