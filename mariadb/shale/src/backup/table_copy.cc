// A table's trees into a file, and back by bulk loads.

#include "backup/table_copy.h"

#include "codec/bytes.h"
#include "codec/fields.h"
#include "codec/table_bytes.h"
#include "engine/engine.h"

namespace shale_sql {

namespace {

// What a block of entries has at least, unless the tree ends.
constexpr size_t kBlockBytes = 256 << 10;

std::string bytes_of(const TableCopy &table) {
  std::string out;
  put_text(&out, table.schema);
  put_text(&out, bytes_of(table.def));
  append_varint(&out, table.next_number);
  append_varint(&out, table.next_hidden);
  return out;
}

}  // namespace

Error read_tree(THD *thd, const shale_snapshot *at, const shale_tree *tree, size_t place,
                const TakeBlock &take, uint64_t *entries) {
  shale_scan *begun = nullptr;
  Error error = consume_error(shale_scan_new(tree, at, nullptr, 0, nullptr, 0, false, &begun));
  ScanHandle scan(begun);
  if (!error) error = consume_error(move_scan(begun, SHALE_FIRST));
  std::string block;
  while (!error && at_row(begun)) {
    if (block.empty()) append_varint(&block, place);
    size_t key_bytes = 0, value_bytes = 0;
    const char *key = static_cast<const char *>(shale_scan_key(begun, &key_bytes));
    put_text(&block, {key, key_bytes});
    const void *value = nullptr;
    if ((error = consume_error(shale_scan_value(begun, &value, &value_bytes)))) break;
    put_text(&block, {static_cast<const char *>(value), value_bytes});
    ++*entries;
    if (!(error = consume_error(move_scan(begun, SHALE_NEXT))) && block.size() >= kBlockBytes) {
      error = take(block);
      block.clear();
      if (thd_killed(thd)) return HA_ERR_ABORTED_BY_USER;
    }
  }
  return error || block.empty() ? std::move(error) : take(block);
}

Error TreeFiller::add(std::string_view block, std::string *wrong) {
  Reader in(block);
  uint64_t place = 0;
  if (!in.varint(&place) || place >= trees_.size() || place < place_) {
    *wrong = "entries of an index that the table does not have";
    return 0;
  }
  if (place != place_) {
    if (Error error = finish()) return error;
    place_ = place;
  }
  std::string_view key, value;
  while (in.left() != 0) {
    const bool whole = in.with_length(&key) && in.with_length(&value);
    if (!whole || (counts_[place_] != 0 && key <= last_)) {
      *wrong = "entries that are damaged, or out of order";
      return 0;
    }
    if (Error error = add_entry(key, value)) return error;
  }
  return 0;
}

Error TreeFiller::finish() {
  if (!ingest_) return 0;
  return consume_error(shale_ingest_finish(ingest_.release(), nullptr));
}

Error TreeFiller::add_entry(std::string_view key, std::string_view value) {
  if (!ingest_) {
    shale_ingest *begun = nullptr;
    Error error = consume_error(shale_ingest_new(trees_[place_].get(), &begun));
    ingest_.reset(begun);
    if (error) return error;
  }
  last_.assign(key);
  counts_[place_]++;
  return consume_error(
      shale_ingest_add(ingest_.get(), key.data(), key.size(), value.data(), value.size()));
}

Error write_table(THD *thd, const std::string &path, const TableCopy &table,
                  const std::vector<TreeHandle> &trees) {
  shale_snapshot *now = nullptr;
  Error error = consume_error(shale_snapshot_new(engine().db, &now, nullptr));
  SnapshotHandle snapshot(now);
  BlockWriter file(path);
  if (!error) error = file.begin();
  if (!error) error = file.add(BlockKind::kTable, bytes_of(table));
  std::string counts;
  for (size_t place = 0; !error && place < trees.size(); place++) {
    uint64_t entries = 0;
    const auto take = [&](const std::string &block) {
      return file.add(BlockKind::kEntries, block);
    };
    error = read_tree(thd, now, trees[place].get(), place, take, &entries);
    append_varint(&counts, entries);
  }
  if (!error) error = file.add(BlockKind::kEnd, counts);
  return error ? std::move(error) : file.finish();
}

Error TableReader::begin(TableCopy *table) {
  if (Error error = file_.begin()) return error;
  BlockKind kind;
  std::string block;
  if (Error error = file_.next(&kind, &block)) return error;
  if (kind != BlockKind::kTable) return file_.damaged("is damaged: it does not say of what it is");
  FieldReader in(block);
  table->schema = in.text();
  const std::string def = in.text();
  table->next_number = in.number();
  table->next_hidden = in.number();
  if (in.is_whole() && parse(def, &table->def)) return 0;
  return file_.damaged("has a definition of a later version than this server's, or is damaged");
}

Error TableReader::fill(THD *thd, const std::vector<TreeHandle> &trees) {
  TreeFiller filling(trees);
  BlockKind kind;
  std::string block;
  for (;;) {
    if (thd_killed(thd)) return HA_ERR_ABORTED_BY_USER;
    if (Error error = file_.next(&kind, &block)) return error;
    if (kind == BlockKind::kEnd) break;
    std::string wrong = kind == BlockKind::kEntries ? "" : "a block of an unknown kind";
    if (wrong.empty()) {
      if (Error error = filling.add(block, &wrong)) return error;
    }
    if (!wrong.empty()) return file_.damaged("is damaged: it has " + wrong);
  }
  FieldReader in(block);
  for (uint64_t count : filling.counts()) {
    if (in.number() != count) return file_.damaged("is damaged: entries are missing");
  }
  if (!in.is_whole()) return file_.damaged("is damaged: its end says otherwise than it is");
  return filling.finish();
}

}  // namespace shale_sql
