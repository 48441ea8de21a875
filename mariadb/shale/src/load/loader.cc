// Entries that come in order go to a bulk load, the others to a sorter that is merged with it.

#include "load/loader.h"

#include "server.h"

#include "engine/errors.h"
#include "engine/settings.h"
#include "load/pace.h"

namespace shale_sql {

namespace {

// How often it is asked whether the statement was killed.
constexpr uint64_t kAsk = 1024;

}  // namespace

size_t sort_memory_of_each(THD *thd, size_t trees) {
  return settings::sort_memory(thd) / std::max<size_t>(trees, 1);
}

TreeLoader::TreeLoader(shale_tree *tree, bool sorted, size_t memory_bytes)
    : tree_(tree), sorted_(sorted), memory_bytes_(memory_bytes) {}

TreeLoader::TreeLoader(IndexBuild *build, size_t memory_bytes)
    : build_(build), memory_bytes_(memory_bytes) {}

Error TreeLoader::begin() {
  shale_ingest *begun = nullptr;
  Error error = consume_error(shale_ingest_new(tree_, &begun));
  ingest_.reset(begun);
  return error;
}

Error TreeLoader::end() {
  if (build_ != nullptr) return build_->finish();
  if (!ingest_) return 0;
  wrote_ = true;
  return consume_error(shale_ingest_finish(ingest_.release(), nullptr));
}

Error TreeLoader::add_sorted(std::string_view key, std::string_view value) {
  if (build_ == nullptr && !ingest_) {
    if (Error error = begin()) return error;
  }
  key_.assign(key);
  has_last_ = true;
  if (build_ != nullptr) return build_->add(key, value);
  return consume_error(
      shale_ingest_add(ingest_.get(), key.data(), key.size(), value.data(), value.size()));
}

Error TreeLoader::add(std::string_view key, std::string_view value) {
  if (sorted_) {
    if (!has_last_ || key > key_) return add_sorted(key, value);
    if (key == key_) {
      value_.assign(value);
      return HA_ERR_FOUND_DUPP_KEY;
    }
    // Not in order after all: what has come so far stays, the rest is sorted.
    sorted_ = false;
    if (Error error = end()) return error;
  }
  if (!sorter_) sorter_ = std::make_unique<Sorter>(my_tmpdir(&mysql_tmpdir_list), memory_bytes_);
  if (sorter_->add(key, value)) return 0;
  return Error(kErrEngine, sorter_->error());
}

// Whether a tree has a key, by a scan that is never ahead of it.
Error TreeLoader::in_tree(shale_scan *scan, std::string_view key, bool *found) {
  *found = false;
  while (at_row(scan)) {
    size_t length = 0;
    const char *bytes = static_cast<const char *>(shale_scan_key(scan, &length));
    int order = std::string_view(bytes, length).compare(key);
    *found = order == 0;
    if (order >= 0) return 0;
    if (Error error = consume_error(move_scan(scan, SHALE_NEXT))) return error;
  }
  return 0;
}

Error TreeLoader::merge(THD *thd, Pace *pace) {
  if (!sorter_->finish()) return Error(kErrEngine, sorter_->error());
  ScanHandle scan;
  if (wrote_) {
    shale_scan *begun = nullptr;
    Error error = consume_error(
        shale_scan_new(tree_, nullptr, nullptr, 0, nullptr, 0, false, &begun));
    scan.reset(begun);
    if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
    if (error) return error;
  }
  has_last_ = false;
  std::string_view key, value;
  for (uint64_t count = 1; sorter_->next(&key, &value); count++) {
    if (count % kAsk == 0) {
      const bool killed = pace != nullptr ? pace->rest() : thd_killed(thd) != 0;
      if (killed) return HA_ERR_ABORTED_BY_USER;
    }
    bool found = has_last_ && key == key_;
    if (!found && scan) {
      if (Error error = in_tree(scan.get(), key, &found)) return error;
    }
    if (found) {
      key_.assign(key);
      value_.assign(value);
      return HA_ERR_FOUND_DUPP_KEY;
    }
    if (Error error = add_sorted(key, value)) return error;
  }
  return sorter_->error().empty() ? 0 : Error(kErrEngine, sorter_->error());
}

Error TreeLoader::finish(THD *thd, Pace *pace) {
  if (sorter_) {
    if (Error error = merge(thd, pace)) return error;
    sorter_.reset();
  }
  return end();
}

}  // namespace shale_sql
