// Coordinates as whole numbers, cells as bytes, and the order of cells in a box.

#include "codec/cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shale_sql {

namespace {

constexpr unsigned kBits = 48;
constexpr uint64_t kZero = uint64_t{1} << (kBits - 1);
// Below 2^8 numbers are as far apart as what they stand for, degrees for one. Each doubling above
// has as many of them. So a shape that lies across 0 is not wider than another one.
constexpr int kLinearExponent = 8;
constexpr unsigned kLinearBits = 42, kMantissaBits = 36, kDoubleMantissa = 52;
constexpr int kBias = 1023;
// Those of shapes with points; then that of all others.
constexpr unsigned kClasses = kBits / 2 + 1;
constexpr unsigned kWithoutPoints = kClasses;
static_assert(kCellClasses == kWithoutPoints + 1);

uint64_t code_of(double coordinate) {
  const double size = std::fabs(coordinate);
  uint64_t code;
  if (size < (1 << kLinearExponent)) {
    constexpr double kScale = uint64_t{1} << (kLinearBits - kLinearExponent);
    code = static_cast<uint64_t>(size * kScale);
  } else {
    uint64_t bits;
    memcpy(&bits, &size, sizeof(bits));
    const int exponent = static_cast<int>(bits >> kDoubleMantissa) - kBias;
    const uint64_t mantissa = bits & ((uint64_t{1} << kDoubleMantissa) - 1);
    code = (uint64_t{1} << kLinearBits) +
           (static_cast<uint64_t>(exponent - kLinearExponent) << kMantissaBits) +
           (mantissa >> (kDoubleMantissa - kMantissaBits));
  }
  return coordinate < 0 ? kZero - code : kZero + code;
}

// How many digits to the base of 4 the greater of the two has.
unsigned class_of(uint64_t width, uint64_t height) {
  uint64_t extent = std::max(width, height);
  unsigned digits = 0;
  for (; extent != 0; extent >>= 2) digits++;
  return digits;
}

// How much wider than its corner a shape of a class may be.
uint64_t reach_of(unsigned cell_class) { return (uint64_t{1} << (2 * cell_class)) - 1; }

struct Place {
  unsigned cell_class;
  uint64_t x, y;
};

// The bits of 16 bits with gaps between them, and back.
uint32_t spread(uint32_t bits) {
  bits = (bits | bits << 8) & 0x00ff00ff;
  bits = (bits | bits << 4) & 0x0f0f0f0f;
  bits = (bits | bits << 2) & 0x33333333;
  return (bits | bits << 1) & 0x55555555;
}

uint32_t gather(uint32_t bits) {
  bits &= 0x55555555;
  bits = (bits | bits >> 1) & 0x33333333;
  bits = (bits | bits >> 2) & 0x0f0f0f0f;
  bits = (bits | bits >> 4) & 0x00ff00ff;
  return (bits | bits >> 8) & 0xffff;
}

void append_place(const Place &place, std::string *key) {
  key->push_back(static_cast<char>(place.cell_class));
  for (int shift = kBits - 16; shift >= 0; shift -= 16) {
    const uint32_t high = spread(place.x >> shift & 0xffff);
    const uint32_t low = spread(place.y >> shift & 0xffff);
    const uint32_t high_first = __builtin_bswap32(high << 1 | low);
    key->append(reinterpret_cast<const char *>(&high_first), sizeof(high_first));
  }
}

Place place_at(std::string_view cell) {
  Place place{static_cast<uchar>(cell[0]), 0, 0};
  for (size_t at = 1; at < kCellBytes; at += sizeof(uint32_t)) {
    uint32_t word;
    memcpy(&word, cell.data() + at, sizeof(word));
    word = __builtin_bswap32(word);
    place.x = place.x << 16 | gather(word >> 1);
    place.y = place.y << 16 | gather(word);
  }
  return place;
}

// What one direction still allows, while the bits of a place are looked at from the highest on.
struct Side {
  uint64_t at, min, max;

  // 0: the same as the place in all bits so far. Bits of min and max that were passed are equal.
  unsigned bits(uint64_t bit) const {
    return ((at & bit) != 0 ? 4 : 0) | ((min & bit) != 0 ? 2 : 0) | ((max & bit) != 0 ? 1 : 0);
  }
  // The least with this bit, and the greatest without it, as far as what follows goes.
  uint64_t upper_half(uint64_t bit) const { return (min & ~(bit - 1) & ~bit) | bit; }
  uint64_t lower_half(uint64_t bit) const { return (max & ~bit) | (bit - 1); }
};

// The least place at or after (x, y), in the order of their bits by turns, with both within bounds;
// false: there is none.
bool next_in_box(Side x, Side y, uint64_t *found_x, uint64_t *found_y) {
  bool has_later = false;
  uint64_t later_x = 0, later_y = 0;
  const uint64_t at_x = x.at, at_y = y.at;
  for (uint64_t bit = kZero; bit != 0; bit >>= 1) {
    for (const bool is_x : {true, false}) {
      Side &side = is_x ? x : y;
      switch (side.bits(bit)) {
        case 1:  // the place is in the lower half, the box in both
          later_x = is_x ? side.upper_half(bit) : x.min;
          later_y = is_x ? y.min : side.upper_half(bit);
          has_later = true;
          side.max = side.lower_half(bit);
          break;
        case 3:  // the box is in the upper half only: it begins after the place
          *found_x = x.min;
          *found_y = y.min;
          return true;
        case 4:  // the box is in the lower half only: it is over
          *found_x = later_x;
          *found_y = later_y;
          return has_later;
        case 5:
          side.min = side.upper_half(bit);
          break;
        default:
          break;
      }
    }
  }
  *found_x = at_x;
  *found_y = at_y;
  return true;
}

// The key after all those of a square whose sides are 2^level.
std::string after_square(const Place &place, unsigned level) {
  std::string key;
  append_place(place, &key);
  unsigned carry = 1u << (2 * level % 8);
  for (size_t at = kCellBytes - 1 - 2 * level / 8; carry != 0; at--) {
    const unsigned sum = static_cast<uchar>(key[at]) + carry;
    key[at] = static_cast<char>(sum);
    carry = sum >> 8;
    if (at == 0) break;
  }
  return key;
}

}  // namespace

unsigned class_of_cell(std::string_view cell) { return static_cast<uchar>(cell[0]); }

std::string first_cell(unsigned cell_class) {
  std::string key;
  append_place({cell_class, 0, 0}, &key);
  return key;
}

void append_mbr(const Mbr &mbr, std::string *out) {
  static_assert(sizeof(Mbr) == kMbrBytes && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  out->append(reinterpret_cast<const char *>(&mbr), kMbrBytes);
}

Mbr mbr_at(const uchar *bytes) {
  Mbr mbr;
  memcpy(&mbr, bytes, kMbrBytes);
  return mbr;
}

void append_cell(const Mbr &mbr, std::string *key) {
  if (!mbr.has_points()) return append_place({kWithoutPoints, 0, 0}, key);
  const uint64_t x = code_of(mbr.x_min), y = code_of(mbr.y_min);
  append_place({class_of(code_of(mbr.x_max) - x, code_of(mbr.y_max) - y), x, y}, key);
}

CellSearch::CellSearch(const Mbr &window, Relation relation)
    : window_(window), relation_(relation) {
  everywhere_ = relation == Relation::kIsApart || !window.has_points();
  if (everywhere_) return;
  window_codes_ = {code_of(window.x_min), code_of(window.x_max), code_of(window.y_min),
                   code_of(window.y_max)};
  class_ = class_of(window_codes_.x_max - window_codes_.x_min,
                    window_codes_.y_max - window_codes_.y_min);
}

// As InnoDB compares a search with an entry, but for kIsApart: its index leaves out shapes that
// ST_DISJOINT is true of, if their rectangles meet.
bool CellSearch::matches(const Mbr &mbr) const {
  const Mbr &window = window_;
  switch (relation_) {
    case Relation::kIsApart:
      return true;
    case Relation::kMeets:
      return mbr.x_min <= window.x_max && window.x_min <= mbr.x_max &&
             mbr.y_min <= window.y_max && window.y_min <= mbr.y_max;
    case Relation::kIsWithin:
      return window.x_min <= mbr.x_min && mbr.x_max <= window.x_max &&
             window.y_min <= mbr.y_min && mbr.y_max <= window.y_max;
    case Relation::kContains:
      return mbr.x_min <= window.x_min && window.x_max <= mbr.x_max &&
             mbr.y_min <= window.y_min && window.y_max <= mbr.y_max;
    default:
      return mbr.x_min == window.x_min && mbr.x_max == window.x_max &&
             mbr.y_min == window.y_min && mbr.y_max == window.y_max;
  }
}

bool CellSearch::box_of(unsigned cell_class, Box *box) const {
  const Box &window = window_codes_;
  const uint64_t reach = reach_of(cell_class);
  const auto before = [&](uint64_t code) { return code > reach ? code - reach : 0; };
  switch (relation_) {
    case Relation::kMeets:
      *box = {before(window.x_min), window.x_max, before(window.y_min), window.y_max};
      return true;
    case Relation::kIsWithin:
      *box = window;
      return cell_class <= class_;
    case Relation::kContains:
      *box = {before(window.x_max), window.x_min, before(window.y_max), window.y_min};
      return cell_class >= class_ && box->x_min <= box->x_max && box->y_min <= box->y_max;
    default:
      *box = {window.x_min, window.x_min, window.y_min, window.y_min};
      return cell_class == class_;
  }
}

bool CellSearch::next(std::string_view cell, std::string *found) const {
  if (everywhere_) {
    found->assign(cell);
    return true;
  }
  Place place = place_at(cell);
  for (; place.cell_class < kClasses; place = {place.cell_class + 1, 0, 0}) {
    Box box;
    if (!box_of(place.cell_class, &box)) continue;
    const Side x = {place.x, box.x_min, box.x_max}, y = {place.y, box.y_min, box.y_max};
    if (!next_in_box(x, y, &place.x, &place.y)) continue;
    found->clear();
    append_place(place, found);
    return true;
  }
  if (!asks_rest()) return false;
  const bool is_rest = class_of_cell(cell) == kWithoutPoints;
  found->assign(is_rest ? std::string(cell) : first_cell(kWithoutPoints));
  return true;
}

// The box in squares, as small as can be: two in its shorter direction, and not too many in the
// longer one. Two in either would take in a square as long as a narrow box.
void CellSearch::add_ranges(unsigned cell_class, const Box &box,
                            std::vector<CellRange> *ranges) const {
  unsigned level = 0;
  const auto are_many = [&] {
    const uint64_t wide = (box.x_max >> level) - (box.x_min >> level) + 1;
    const uint64_t high = (box.y_max >> level) - (box.y_min >> level) + 1;
    return std::min(wide, high) > 2 || std::max(wide, high) > kSquaresMax / 2;
  };
  while (are_many()) level++;
  std::vector<CellRange> squares;
  for (uint64_t x = box.x_min >> level; x <= box.x_max >> level; x++) {
    for (uint64_t y = box.y_min >> level; y <= box.y_max >> level; y++) {
      const Place corner = {cell_class, x << level, y << level};
      CellRange range;
      append_place(corner, &range.lower);
      range.upper = after_square(corner, level);
      squares.push_back(std::move(range));
    }
  }
  std::sort(squares.begin(), squares.end(),
            [](const CellRange &a, const CellRange &b) { return a.lower < b.lower; });
  for (CellRange &range : squares) {
    if (!ranges->empty() && ranges->back().upper == range.lower) {
      ranges->back().upper = std::move(range.upper);
    } else {
      ranges->push_back(std::move(range));
    }
  }
}

std::vector<CellRange> CellSearch::ranges(uint64_t there) const {
  std::vector<CellRange> found;
  if (everywhere_) return {CellRange()};
  for (unsigned cell_class = 0; cell_class < kCellClasses; cell_class++) {
    Box box;
    const bool is_rest = cell_class == kWithoutPoints;
    if (is_rest ? !asks_rest() : !box_of(cell_class, &box)) continue;
    if (!is_rest && (there >> cell_class & 1) != 0) {
      add_ranges(cell_class, box, &found);
      continue;
    }
    const std::string lower = first_cell(cell_class), upper = first_cell(cell_class + 1);
    if (!found.empty() && found.back().upper == lower) {
      found.back().upper = upper;
    } else {
      found.push_back({lower, upper});
    }
  }
  return found;
}

}  // namespace shale_sql
