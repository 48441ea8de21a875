// What the engine counts, asked when it is shown.

#include "show/status_variables.h"

#include "server.h"

#include "engine/engine.h"
#include "show/engine_report.h"

#include <mutex>
#include <string>

namespace shale_sql {

namespace {

// The server asks twice, for the names and the values: what it is shown lives here, at addresses
// that it has from the table below.
struct Shown {
  std::mutex lock;  // of what follows
  ulonglong rows_inserted, rows_updated, rows_deleted;
  ulonglong user_bytes, wal_bytes, flush_bytes, compact_bytes, read_bytes;
  ulonglong wal_syncs, commits, commit_groups, stall_micros, stalls;
  ulonglong cache_hits, cache_misses, filter_checks, filter_useful;
  ulonglong point_reads, multi_point_reads, scans, blocks_prefetched;
  ulonglong memory_used, memory_bound, snapshots, debt_bytes, disk_bytes, lock_escalations;
  ulonglong space_used;
  double write_amp;
  char space_state[16];
  char background_error[512];  // empty if all is well
};

Shown shown;

SHOW_VAR rows[] = {
    {"bytes_written_by_users", (char *)&shown.user_bytes, SHOW_ULONGLONG},
    {"bytes_written_to_log", (char *)&shown.wal_bytes, SHOW_ULONGLONG},
    {"bytes_flushed", (char *)&shown.flush_bytes, SHOW_ULONGLONG},
    {"bytes_compacted", (char *)&shown.compact_bytes, SHOW_ULONGLONG},
    {"bytes_read", (char *)&shown.read_bytes, SHOW_ULONGLONG},
    {"bytes_on_disk", (char *)&shown.disk_bytes, SHOW_ULONGLONG},
    {"bytes_to_compact", (char *)&shown.debt_bytes, SHOW_ULONGLONG},
    {"space_used", (char *)&shown.space_used, SHOW_ULONGLONG},
    {"space_state", shown.space_state, SHOW_CHAR},
    {"background_error", shown.background_error, SHOW_CHAR},
    {"write_amplification", (char *)&shown.write_amp, SHOW_DOUBLE},
    {"log_syncs", (char *)&shown.wal_syncs, SHOW_ULONGLONG},
    {"commits", (char *)&shown.commits, SHOW_ULONGLONG},
    {"commit_groups", (char *)&shown.commit_groups, SHOW_ULONGLONG},
    {"stalls", (char *)&shown.stalls, SHOW_ULONGLONG},
    {"stall_microseconds", (char *)&shown.stall_micros, SHOW_ULONGLONG},
    {"block_cache_hits", (char *)&shown.cache_hits, SHOW_ULONGLONG},
    {"block_cache_misses", (char *)&shown.cache_misses, SHOW_ULONGLONG},
    {"point_reads", (char *)&shown.point_reads, SHOW_ULONGLONG},
    {"multi_point_reads", (char *)&shown.multi_point_reads, SHOW_ULONGLONG},
    {"scans", (char *)&shown.scans, SHOW_ULONGLONG},
    {"blocks_prefetched", (char *)&shown.blocks_prefetched, SHOW_ULONGLONG},
    {"filter_checks", (char *)&shown.filter_checks, SHOW_ULONGLONG},
    {"filter_useful", (char *)&shown.filter_useful, SHOW_ULONGLONG},
    {"memory_used", (char *)&shown.memory_used, SHOW_ULONGLONG},
    {"memory_bound", (char *)&shown.memory_bound, SHOW_ULONGLONG},
    {"open_snapshots", (char *)&shown.snapshots, SHOW_ULONGLONG},
    {"lock_escalations", (char *)&shown.lock_escalations, SHOW_ULONGLONG},
    {"rows_inserted", (char *)&shown.rows_inserted, SHOW_ULONGLONG},
    {"rows_updated", (char *)&shown.rows_updated, SHOW_ULONGLONG},
    {"rows_deleted", (char *)&shown.rows_deleted, SHOW_ULONGLONG},
    {NullS, NullS, SHOW_LONG}};

template <size_t kSize>
void keep(char (&to)[kSize], const std::string &text) {
  strmake(to, text.c_str(), kSize - 1);
}

void ask() {
  Json now = engine_statistics();
  const Json &counters = now["counters"];
  shown.user_bytes = now["user_bytes"].whole();
  shown.wal_bytes = now["wal_bytes"].whole();
  shown.flush_bytes = now["flush_bytes"].whole();
  shown.compact_bytes = now["compact_bytes"].whole();
  shown.read_bytes = counters["read_bytes"].whole();
  shown.write_amp = now["write_amp"].number();
  shown.wal_syncs = counters["wal_syncs"].whole();
  shown.commits = counters["commits"].whole();
  shown.commit_groups = counters["commit_groups"].whole();
  shown.stalls = counters["stalls"].whole();
  double stalled = 0;
  for (const auto &cause : now["stall_seconds"].members()) stalled += cause.second.number();
  shown.stall_micros = static_cast<ulonglong>(stalled * 1e6);
  shown.cache_hits = counters["data_block_hits"].whole();
  shown.cache_misses = counters["data_block_misses"].whole();
  shown.point_reads = counters["gets"].whole();
  shown.multi_point_reads = counters["multi_gets"].whole();
  shown.blocks_prefetched = counters["blocks_prefetched"].whole();
  shown.scans = counters["scans"].whole();
  shown.filter_checks = counters["filter_checks"].whole();
  shown.filter_useful = counters["filter_useful"].whole();
  shown.space_used = now["space_used"].whole();
  keep(shown.space_state, now["space_state"].text());
  const Json &failure = now["background_error"];
  keep(shown.background_error, failure.is_null() ? "" : failure.text());
  shown.memory_bound = now["memory_bytes"].whole();
  shown.snapshots = now["snapshots"].whole();
  shown.lock_escalations = now["lock_escalations"].whole();
  shown.memory_used = shown.debt_bytes = shown.disk_bytes = 0;
  for (const auto &part : now["memory_used"].members()) shown.memory_used += part.second.whole();
  for (const Json &tree : now["trees"].elements()) {
    shown.debt_bytes += tree["debt_bytes"].whole();
    for (const Json &level : tree["levels"].elements()) shown.disk_bytes += level["bytes"].whole();
  }
  const RowCounts &counts = engine().rows;
  shown.rows_inserted = counts.inserted();
  shown.rows_updated = counts.updated();
  shown.rows_deleted = counts.deleted();
}

int show(MYSQL_THD, SHOW_VAR *variable, void *, struct system_status_var *, enum enum_var_type) {
  std::lock_guard<std::mutex> one_at_a_time(shown.lock);
  ask();
  variable->type = SHOW_ARRAY;
  variable->value = reinterpret_cast<char *>(&rows);
  return 0;
}

}  // namespace

SHOW_VAR status_variables[] = {{"Shale", (char *)&show, SHOW_FUNC}, {NullS, NullS, SHOW_LONG}};

}  // namespace shale_sql
