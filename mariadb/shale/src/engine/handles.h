// Owners of what the C interface hands out.
#pragma once

#include "shale.h"

#include <memory>
#include <string_view>

namespace shale_sql {

template <typename T, void (*Free)(T *)>
struct FreeWith {
  void operator()(T *handle) const { Free(handle); }
};

using ErrorHandle = std::unique_ptr<shale_error, FreeWith<shale_error, shale_error_free>>;
using BytesHandle = std::unique_ptr<shale_bytes, FreeWith<shale_bytes, shale_bytes_free>>;
using TreeHandle = std::unique_ptr<shale_tree, FreeWith<shale_tree, shale_tree_free>>;
using ScanHandle = std::unique_ptr<shale_scan, FreeWith<shale_scan, shale_scan_free>>;
using LockingScanHandle =
    std::unique_ptr<shale_locking_scan, FreeWith<shale_locking_scan, shale_locking_scan_free>>;
using BatchHandle = std::unique_ptr<shale_batch, FreeWith<shale_batch, shale_batch_free>>;
using SnapshotHandle =
    std::unique_ptr<shale_snapshot, FreeWith<shale_snapshot, shale_snapshot_free>>;
using InterruptHandle =
    std::unique_ptr<shale_interrupt, FreeWith<shale_interrupt, shale_interrupt_free>>;
using BuildHandle = std::unique_ptr<shale_build, FreeWith<shale_build, shale_build_free>>;
using TrackerHandle = std::unique_ptr<shale_tracker, FreeWith<shale_tracker, shale_tracker_free>>;
using RoundHandle = std::unique_ptr<shale_round, FreeWith<shale_round, shale_round_free>>;
using IngestHandle = std::unique_ptr<shale_ingest, FreeWith<shale_ingest, shale_ingest_free>>;

inline std::string_view view_of(const BytesHandle &bytes) {
  size_t length = 0;
  const void *data = shale_bytes_data(bytes.get(), &length);
  return {static_cast<const char *>(data), length};
}

// To a row that is named without a key.
inline shale_error *move_scan(shale_scan *scan, shale_seek how) {
  return shale_scan_move(scan, how, nullptr, 0);
}
inline bool at_row(const shale_scan *scan) { return shale_scan_key(scan, nullptr) != nullptr; }

}  // namespace shale_sql
