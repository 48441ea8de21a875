// Where shapes are in a SPATIAL index, and where to look for those that a search asks for.
//
// A shape has one entry, at its cell: a class and a place. Coordinates become whole numbers of 48
// bits in the same order. The class says how wide the shape's rectangle is in these: below 4^class
// in both directions. The place is its lower left corner, with the bits of both numbers by turns,
// so that what is near lies together.
//
// Shapes of one class that meet a window have their corners in the window made wider by 4^class to
// the left and down, wherever they lie: none has to be cut at the border of anything. A search
// looks there, class by class, and passes over classes that nobody has.
#pragma once

#include "codec/bytes.h"

#include <string>
#include <string_view>
#include <vector>

namespace shale_sql {

// The smallest rectangle around a shape. Of one without a point the least is above the greatest.
struct Mbr {
  double x_min, x_max, y_min, y_max;
  bool has_points() const { return x_min <= x_max && y_min <= y_max; }
};

// How many bytes the beginning of an entry's key has, which is its cell.
constexpr size_t kCellBytes = 13;
// How many bytes a rectangle has: four numbers, the lowest byte first, in the order of Mbr.
constexpr size_t kMbrBytes = 32;

void append_mbr(const Mbr &mbr, std::string *out);
Mbr mbr_at(const uchar *bytes);

void append_cell(const Mbr &mbr, std::string *key);

unsigned class_of_cell(std::string_view cell);
// The first of a class; also of one behind the last.
std::string first_cell(unsigned cell_class);
constexpr unsigned kCellClasses = 26;

// What a search asks of a rectangle.
enum class Relation : uint8_t {
  kMeets,     // it has a point in common with the window
  kIsWithin,  // it is within the window
  kContains,  // it contains the window
  kEquals,
  // Its shape has no point in common with that of the window, though their rectangles may: none is
  // out of the question.
  kIsApart,
};

// From `lower` up to but without `upper`, of keys; an empty bound is none.
struct CellRange {
  std::string lower, upper;
};

class CellSearch {
 public:
  static constexpr uint64_t kSquaresMax = 32;

  CellSearch(const Mbr &window, Relation relation);

  bool matches(const Mbr &mbr) const;
  // The first cell at or after `cell` that may have a match; false: there is none.
  bool next(std::string_view cell, std::string *found) const;
  // All cells that may have a match are in these ranges, and some others. In order; they do not
  // overlap. There are up to kSquaresMax of each class that is in `there`, bit by bit; of others,
  // that follow each other, one has all cells.
  std::vector<CellRange> ranges(uint64_t there = ~uint64_t{0}) const;

 private:
  // Corners that a class may have, as whole numbers, both ends included.
  struct Box {
    uint64_t x_min, x_max, y_min, y_max;
  };

  // Whether a rectangle without a point may match.
  bool asks_rest() const { return everywhere_ || relation_ == Relation::kIsWithin; }
  bool box_of(unsigned cell_class, Box *box) const;
  void add_ranges(unsigned cell_class, const Box &box, std::vector<CellRange> *ranges) const;

  const Mbr window_;
  const Relation relation_;
  bool everywhere_ = false;  // no cell is out of the question
  unsigned class_ = 0;       // of the window
  Box window_codes_{};
};

}  // namespace shale_sql
