// The tables that are open, by path; automatic numbers, hidden keys and statistics of one.

#include "tables/shared_table.h"

#include "server.h"

#include "codec/index_defs.h"
#include "codec/same_definition.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/trees.h"

#include <sstream>

namespace shale_sql {

namespace {

// Statistics of so few rows are not renewed as they come and go.
constexpr uint64_t kFewRows = 64;

// Hidden keys are given out from blocks, so that few writes keep them and none is given twice.
constexpr uint64_t kHiddenBlock = 1 << 16;
// Of what is left of a column's numbers at most the 1,024th part is ahead.
constexpr uint64_t kNumbersAhead = 128;
constexpr uint64_t kShareAhead = 1024;

// Gives a definition of an earlier format what the server's definition says of indexes. Who
// opens a table has it locked against DDL, so nobody else writes its definition now.
void complete(const std::string &path, TABLE *opened, TableDef *def) {
  const std::string was = bytes_of(*def);
  describe_indexes(opened, def);
  if (was == bytes_of(*def)) return;
  // Lost with the machine it is written again. If it cannot be written, the next start tries.
  if (Error error = engine().catalog.complete(path, *def)) {
    log_note("what " + path + " says of its indexes is not in the catalog yet: " + error.text());
  }
}

}  // namespace

Error compare_definitions(const std::string &path, TABLE *table, const TableDef &def) {
  const std::string other = difference(table, def);
  if (other.empty()) return 0;
  // Never HA_ERR_TABLE_DEF_CHANGED: the server would remove the .frm file.
  return Error(HA_ERR_INCOMPATIBLE_DEFINITION,
               "the catalog has " + other + " for " + path + " than its .frm file: restore the "
               ".frm file that was there when the table was last changed");
}

SharedTable::SharedTable(std::string path, std::shared_ptr<const TableDef> def)
    : path(std::move(path)), def(std::move(def)) {}

Error SharedTable::open(const std::string &path, TABLE *opened_by,
                        std::shared_ptr<SharedTable> *table) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  std::weak_ptr<SharedTable> &place = open.by_path[path];
  if ((*table = place.lock())) return 0;
  TableDef def;
  if (Error error = engine().catalog.read(path, &def)) {
    open.by_path.erase(path);
    return error;
  }
  if (Error error = compare_definitions(path, opened_by, def)) {
    open.by_path.erase(path);
    return error;
  }
  complete(path, opened_by, &def);
  auto opened = std::make_shared<SharedTable>(path, std::make_shared<const TableDef>(def));
  if (Error error = opened->open_trees()) {
    if (error != HA_ERR_TABLE_DEF_CHANGED) return error;
    // By that number the server would remove the .frm file.
    return Error(HA_ERR_INCOMPATIBLE_DEFINITION, error.text());
  }
  if (Error error = opened->read_statistics()) return error;
  auto made = open.epoch_by_path.find(path);
  if (made != open.epoch_by_path.end()) opened->trees_epoch = made->second;
  place = opened;
  *table = std::move(opened);
  return 0;
}

Error SharedTable::links(std::shared_ptr<const Links> *found) {
  std::lock_guard<std::mutex> lock(links_lock_);
  if (links_ == nullptr || links_->version != links_version()) {
    if (Error error = links_of(path, *def, &links_)) return error;
  }
  *found = links_;
  return 0;
}

void SharedTable::forget(const std::string &path, bool keep_number) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  auto place = open.by_path.find(path);
  if (place == open.by_path.end()) return;
  if (std::shared_ptr<SharedTable> table = place->second.lock()) {
    // Without it the next number is looked up in the table.
    if (keep_number) (void)table->keep_number_exactly();
    table->forgotten_ = true;
  }
  open.by_path.erase(place);
}

void SharedTable::close(std::shared_ptr<SharedTable> *table) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  if (table->use_count() == 1 && !(*table)->forgotten_) {
    (void)(*table)->keep_number_exactly();
  }
  table->reset();
}

std::shared_ptr<SharedTable> SharedTable::of_tree(const std::string &tree) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  for (const auto &[path, place] : open.by_path) {
    std::shared_ptr<SharedTable> table = place.lock();
    if (table == nullptr) continue;
    for (const IndexDef &index : table->def->indexes) {
      if (tree_name(table->def->table_id, index.id) == tree) return table;
    }
  }
  return nullptr;
}

const KeyWords *SharedTable::key_words(const std::string &tree) const {
  if (!has_key_words_.load()) return nullptr;
  for (size_t i = 0; i < key_words_.size(); i++) {
    if (tree_name(def->table_id, def->indexes[i].id) == tree) return key_words_[i].get();
  }
  return nullptr;
}

void SharedTable::learn_key_words(TABLE *table, const std::vector<unsigned> &numbers) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  if (has_key_words_.load()) return;
  for (unsigned number : numbers) {
    const bool many = has_many_entries(table, number);
    key_words_.push_back(many ? nullptr : std::make_unique<KeyWords>(table, number));
  }
  has_key_words_.store(true);
}

uint64_t SharedTable::tree_epoch() { return engine().tables.tree_epoch.load(); }

uint64_t SharedTable::next_tree_epoch() { return ++engine().tables.tree_epoch; }

void SharedTable::note_new_trees(const std::string &path) {
  note_new_trees(path, next_tree_epoch());
}

void SharedTable::note_new_trees(const std::string &path, uint64_t epoch) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  uint64_t &last = open.epoch_by_path[path];
  last = std::max(last, epoch);
}

void SharedTable::note_renamed(const std::string &from, const std::string &to) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  open.by_path.erase(from);
  open.by_path.erase(to);
  open.epoch_by_path.erase(to);
  auto moved = open.epoch_by_path.extract(from);
  if (moved.empty()) return;
  moved.key() = to;
  open.epoch_by_path.insert(std::move(moved));
}

void SharedTable::note_gone(const std::string &path) {
  OpenTables &open = engine().tables;
  std::lock_guard<std::mutex> one_at_a_time(open.lock);
  open.by_path.erase(path);
  open.epoch_by_path.erase(path);
}

Error SharedTable::open_trees() {
  for (const IndexDef &index : def->indexes) {
    TreeHandle tree;
    const std::string name = tree_name(def->table_id, index.id);
    if (Error error = open_tree(engine().db, name, &tree)) return error;
    trees.push_back(std::move(tree));
  }
  return 0;
}

void SharedTable::number_was_kept(uint64_t kept, uint64_t max) {
  kept_number_ = kept;
  greatest_number_ = max;
}

Error SharedTable::write_number(uint64_t number) {
  if (Error error = engine().catalog.write_number('A', def->table_id, number)) return error;
  kept_number_ = number;
  return 0;
}

Error SharedTable::keep_number() {
  std::lock_guard<std::mutex> one_at_a_time(numbers);
  uint64_t now = next_number.load();
  if (now <= kept_number_) return 0;
  uint64_t left = now < greatest_number_ ? greatest_number_ - now : 0;
  return write_number(now + std::min(kNumbersAhead, left / kShareAhead));
}

Error SharedTable::keep_number_exactly() {
  std::lock_guard<std::mutex> one_at_a_time(numbers);
  uint64_t now = next_number.load();
  return now == kept_number_ || now == 0 ? 0 : write_number(now);
}

Error SharedTable::hidden_key(uint64_t *key) {
  std::lock_guard<std::mutex> one_at_a_time(hidden_);
  if (hidden_next_ == hidden_end_) {
    uint64_t end = 0;
    if (Error error = engine().catalog.read_number('H', def->table_id, &end)) return error;
    uint64_t first = end == 0 ? 1 : end;
    if (Error error = engine().catalog.write_number('H', def->table_id, first + kHiddenBlock)) {
      return error;
    }
    hidden_next_ = first;
    hidden_end_ = first + kHiddenBlock;
  }
  *key = hidden_next_++;
  return 0;
}

std::vector<IndexStatistics> SharedTable::statistics() const {
  std::lock_guard<std::mutex> one_at_a_time(statistics_lock_);
  return statistics_;
}

void SharedTable::set_statistics(std::vector<IndexStatistics> found) {
  std::lock_guard<std::mutex> one_at_a_time(statistics_lock_);
  statistics_ = std::move(found);
  statistics_rows_.store(0);
  for (const IndexStatistics &index : statistics_) {
    if (index.name.empty() && !index.rows_per_key.empty()) {
      statistics_rows_.store(static_cast<uint64_t>(index.rows_per_key[0]));
    }
  }
  statistics_version_.fetch_add(1);
}

std::unique_lock<std::mutex> SharedTable::statistics_are_due(uint64_t rows) {
  uint64_t then = statistics_rows_.load();
  // Of few rows little depends on how many are equal, and they come and go all the time.
  const bool few = then != 0 && std::max(rows, then) < kFewRows;
  if (few || (rows <= 2 * then && rows >= then / 2)) return {};
  std::unique_lock<std::mutex> lock(looking_, std::try_to_lock);
  return lock;
}

// One line for an index: its name, then the numbers. Names with a line break lose their
// statistics.
Error SharedTable::keep_statistics() {
  std::ostringstream out;
  for (const IndexStatistics &index : statistics()) {
    if (index.name.find_first_of("\n\t") != std::string::npos) continue;
    out << index.name;
    for (double rows : index.rows_per_key) out << '\t' << rows;
    out << '\n';
  }
  return engine().catalog.write_text('S', def->table_id, out.str());
}

Error SharedTable::read_statistics() {
  std::string text;
  if (Error error = engine().catalog.read_text('S', def->table_id, &text)) return error;
  std::istringstream lines(text);
  std::vector<IndexStatistics> found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    IndexStatistics index;
    std::getline(words, index.name, '\t');
    for (double rows; words >> rows;) index.rows_per_key.push_back(rows);
    found.push_back(std::move(index));
  }
  set_statistics(std::move(found));
  return 0;
}

}  // namespace shale_sql
