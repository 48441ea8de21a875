// How many rows share a value of the first 1, 2, ... columns of an index: counted if the index is
// small, else estimated out of runs of neighbouring entries at places spread over it.
#pragma once

#include "codec/key_codec.h"
#include "engine/errors.h"
#include "engine/handles.h"

#include <functional>
#include <vector>

namespace shale_sql {

struct SampleSize {
  uint64_t count_all;  // up to so many entries all are looked at
  unsigned places;     // else so many runs
  unsigned entries;    // of so many entries each
};

// Of ANALYZE TABLE, and of the first statement after a table has grown much.
constexpr SampleSize kThorough = {50000, 64, 500};
constexpr SampleSize kQuick = {1000, 8, 100};

// `parts`: columns of the index. `stop` is asked now and then whether to give up, which answers
// HA_ERR_ABORTED_BY_USER.
Error sample_index(const shale_tree *tree, const KeyCodec &codec, unsigned parts, SampleSize size,
                 const std::function<bool()> &stop, std::vector<double> *rows_per_key);

}  // namespace shale_sql
