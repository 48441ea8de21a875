// What SHOW ENGINE SHALE STATUS prints, out of the reports of the engine.

#include "show/status.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/handles.h"
#include "show/engine_report.h"
#include "tables/in_words.h"
#include "tables/tree_owners.h"

#include <cstdarg>

namespace shale_sql {

namespace {

constexpr double kMega = 1e6;

void append(std::string *out, const char *format, ...) ATTRIBUTE_FORMAT(printf, 2, 3);

void append(std::string *out, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (length < 0) return;
  out->append(line, std::min<size_t>(static_cast<size_t>(length), sizeof(line) - 1));
}

void append_title(std::string *out, const char *title) {
  append(out, "\n%s\n%s\n", title, std::string(strlen(title), '-').c_str());
}

void append_trees(const Json &statistics, std::string *out) {
  std::map<std::string, TreeOwner> owners = tree_owners();
  append_title(out, "TABLES AND INDEXES");
  for (const Json &tree : statistics["trees"].elements()) {
    append(out, "%s\n", name_of(owners, tree["name"].text()).c_str());
    append(out, "  in memory %.1f MB, flushed %.1f MB, to compact %.1f MB, space amp %.2f\n",
           tree["memtable_bytes"].number() / kMega, tree["flush_bytes"].number() / kMega,
           tree["debt_bytes"].number() / kMega, tree["space_amp"].number());
    if (tree["levels"].elements().empty()) continue;
    append(out, "  level  files        MB    target MB     entries     deletes  ratio  codec"
                "      jobs   read MB  written MB\n");
    for (const Json &level : tree["levels"].elements()) {
      append(out, "  %5.0f  %5.0f %9.1f  %11.1f  %10.0f  %10.0f  %5.2f  %-8s %6.0f %9.1f %11.1f\n",
             level["level"].number(), level["tables"].number(), level["bytes"].number() / kMega,
             level["target_bytes"].number() / kMega, level["entries"].number(),
             level["deletes"].number(), level["ratio"].number(), level["codec"].text().c_str(),
             level["jobs"].number(), level["read_bytes"].number() / kMega,
             level["write_bytes"].number() / kMega);
    }
  }
}

void append_failed_reference(std::string *out) {
  const FailedReference::Last last = engine().failed_reference.last();
  append_title(out, "LAST FOREIGN KEY ERROR");
  if (last.count == 0) {
    append(out, "none since the start\n");
    return;
  }
  append(out, "%llu since the start, the last one %.0f s ago:\n",
         static_cast<unsigned long long>(last.count), difftime(time(nullptr), last.when));
  *out += last.text + "\n";
}

void append_transactions(std::string *out) {
  Json last = engine_report(SHALE_REPORT_DEADLOCK), all = engine_report(SHALE_REPORT_TRANSACTIONS);
  append_title(out, "LAST DEADLOCK");
  if (last.is_null()) {
    append(out, "none since the start\n");
  } else {
    append(out, "%.0f since the start, the last one %.0f s ago:\n", last["count"].number(),
           last["seconds_ago"].number());
    *out += in_words(last["text"].text()) + "\n";
  }
  append_failed_reference(out);
  append_title(out, "TRANSACTIONS");
  append(out, "%zu under way (information_schema.SHALE_TRANSACTIONS has them all)\n",
         all.elements().size());
  for (const Json &one : all.elements()) {
    if (one["waits_for"].is_null()) continue;
    std::string blockers;
    for (const Json &other : one["blockers"].elements()) blockers += " " + other.text();
    append(out, "transaction %s, %.0f writes, waits for%s: ", one["id"].text().c_str(),
           one["writes"].number(), blockers.c_str());
    *out += in_words(one["waits_for"].text()) + "\n";
  }
}

void append_totals(const Json &statistics, std::string *out) {
  append_title(out, "WRITING");
  append(out, "up %.0f s; user %.1f MB, log %.1f MB, flush %.1f MB, compaction %.1f MB; "
              "write amp %.2f (without the log)\n",
         statistics["uptime_seconds"].number(), statistics["user_bytes"].number() / kMega,
         statistics["wal_bytes"].number() / kMega, statistics["flush_bytes"].number() / kMega,
         statistics["compact_bytes"].number() / kMega, statistics["write_amp"].number());
  append(out, "log: %.0f files, %.3f s in syncs\n", statistics["wal_files"].number(),
         statistics["wal_sync_seconds"].number());
  append(out, "writers waited:");
  for (const auto &[cause, seconds] : statistics["stall_seconds"].members()) {
    append(out, " %s %.3f s", cause.c_str(), seconds.number());
  }
  append(out, "\n");
  const Json &failure = statistics["background_error"];
  if (!failure.is_null()) append(out, "background work fails: %s\n", failure.text().c_str());
  append_title(out, "SPACE");
  append(out, "all files %.1f MB", statistics["space_used"].number() / kMega);
  double limit = statistics["space_limit"].number();
  if (limit > 0) {
    append(out, " of %.1f MB (shale_space_limit), %.1f MB of it kept back: %s", limit / kMega,
           statistics["space_reserved"].number() / kMega, statistics["space_state"].text().c_str());
  }
  append(out, "\n");
  append_title(out, "MEMORY");
  append(out, "bound %.1f MB (shale_memory)\n", statistics["memory_bytes"].number() / kMega);
  for (const auto &[part, bytes] : statistics["memory_used"].members()) {
    append(out, "%s %.1f MB\n", part.c_str(), bytes.number() / kMega);
  }
  append(out, "open snapshots: %.0f\n", statistics["snapshots"].number());
  append_title(out, "CPU AND LATENCIES");
  for (const auto &[activity, cpu] : statistics["cpu"].members()) {
    append(out, "cpu of %s: %.3f s\n", activity.c_str(), cpu["seconds"].number());
  }
  for (const auto &[operation, times] : statistics["latencies"].members()) {
    append(out, "%s: median %.1f us, 99%% %.1f us, longest %.1f us\n", operation.c_str(),
           times["p50_us"].number(), times["p99_us"].number(), times["max_us"].number());
  }
  append_title(out, "COUNTERS");
  for (const auto &[name, count] : statistics["counters"].members()) {
    append(out, "%s %.0f\n", name.c_str(), count.number());
  }
}

bool show_status(handlerton *, THD *thd, stat_print_fn *print, enum ha_stat_type what) {
  // The engine has no mutexes that it would count.
  if (what != HA_ENGINE_STATUS) return false;
  Json statistics = engine_statistics();
  std::string text;
  append_totals(statistics, &text);
  append_transactions(&text);
  append_trees(statistics, &text);
  return print(thd, STRING_WITH_LEN("SHALE"), STRING_WITH_LEN(""), text.data(), text.size());
}

}  // namespace

void fill_status(handlerton *hton) { hton->show_status = show_status; }

}  // namespace shale_sql
