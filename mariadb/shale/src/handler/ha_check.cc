// CHECK TABLE and OPTIMIZE TABLE.
//
// CHECK reads one snapshot of all trees: every row has to decode, and every index has to have one
// entry for each row, as the row says it, and no other. For that the expected entries of all rows
// are summed up as hashes while the rows are read, and the entries that are there while the index
// is; memory does not grow with the table. Only if the sums differ each row and entry is looked
// up, to tell which: what rows give, and what the index has beside. What cannot be read, since a
// file is damaged, is told with the file, and the other trees are read all the same. QUICK counts
// entries without reading rows; EXTENDED looks each up in any case, compares the rows of unique
// keys of which the server does that (ha_unique.cc), and checks the bytes of the whole database.

#include "handler/ha_shale.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "txn/trx.h"

#include <algorithm>
#include <functional>

using namespace shale_sql;

namespace {

// Beyond so many findings of one index the rest is only counted.
constexpr unsigned kTold = 10;
// Of a set of keys: for one that is not in it there is a chance of 1 in 8,000 that it seems to be.
constexpr uint64_t kBitsOfKey = 24;
constexpr unsigned kProbes = 6;
constexpr uint64_t kMostBits = 1ULL << 29;

struct Sum {
  uint64_t count = 0;
  uint64_t hash = 0;

  // Of all entries in any order.
  void add(std::string_view key, std::string_view value) {
    std::hash<std::string_view> hash_of;
    uint64_t both = hash_of(key) * 0x9e3779b97f4a7c15ULL ^ hash_of(value);
    both ^= both >> 29;
    hash += both * 0xbf58476d1ce4e5b9ULL;
    count++;
  }
};

// Keys, of which some others seem to be in it too: it has no room for the keys themselves.
class KeySet {
 public:
  void begin(uint64_t keys) {
    bits_.assign(std::min(std::max<uint64_t>(keys, 1) * kBitsOfKey, kMostBits) / 64 + 1, 0);
  }
  void add(std::string_view key) {
    Probe probe(key);
    for (unsigned i = 0; i < kProbes; i++, probe.next()) word_of(probe) |= bit_of(probe);
  }
  bool may_have(std::string_view key) {
    Probe probe(key);
    for (unsigned i = 0; i < kProbes; i++, probe.next()) {
      if ((word_of(probe) & bit_of(probe)) == 0) return false;
    }
    return true;
  }

 private:
  struct Probe {
    explicit Probe(std::string_view key)
        : hash(std::hash<std::string_view>()(key)), by((hash >> 33) * 2 + 1) {}
    void next() { hash += by * 0x9e3779b97f4a7c15ULL; }
    uint64_t hash, by;
  };
  uint64_t &word_of(const Probe &probe) { return bits_[(probe.hash >> 6) % bits_.size()]; }
  static uint64_t bit_of(const Probe &probe) { return 1ULL << (probe.hash & 63); }

  std::vector<uint64_t> bits_;
};

std::string hex(std::string_view bytes) {
  static const char *digits = "0123456789abcdef";
  std::string out = "0x";
  for (unsigned char byte : bytes) {
    out.push_back(digits[byte >> 4]);
    out.push_back(digits[byte & 15]);
    if (out.size() > 130) return out + "...";
  }
  return out;
}

// Ends a walk through entries.
constexpr int kSeenEnough = -1;

// The row in the record, kept while another one is read there: what a hash-unique key compares.
class OtherRow {
 public:
  OtherRow(TABLE *table, const KEY &key)
      : table_(table),
        key_(key),
        record_(table->record[0], table->record[0] + table->s->reclength) {
    // To the columns, of which the index has the hash.
    setup_keyinfo_hash(&key_);
    for (uint part = 0; part < key_.user_defined_key_parts; part++) {
      const Field *field = key_.key_part[part].field;
      if ((field->flags & BLOB_FLAG) == 0 || field->is_null()) continue;
      auto *blob = const_cast<Field_blob *>(static_cast<const Field_blob *>(field));
      // Of a generated column they are in memory of the column's own.
      blobs_.emplace_back(new std::string(reinterpret_cast<char *>(blob->get_ptr()),
                                          blob->get_length()));
      blob->set_ptr_offset(record_.data() - table->record[0],
                           static_cast<uint32>(blobs_.back()->size()),
                           reinterpret_cast<const uchar *>(blobs_.back()->data()));
    }
  }

  // As the server compares rows before it writes one.
  bool equals_record() const {
    my_ptrdiff_t offset = record_.data() - table_->record[0];
    for (uint part = 0; part < key_.user_defined_key_parts; part++) {
      const KEY_PART_INFO &info = key_.key_part[part];
      const Field *field = info.field;
      if (field->is_null() || field->is_null(offset)) return false;
      bool partly = f_is_blob(info.key_type) && info.length != 0;
      int order = partly ? field->cmp_prefix(field->ptr, field->ptr + offset, info.length)
                         : field->cmp(field->ptr, field->ptr + offset);
      if (order != 0) return false;
    }
    return true;
  }

 private:
  TABLE *table_;
  KEY key_;
  std::vector<uchar> record_;
  std::vector<std::unique_ptr<std::string>> blobs_;
};

}  // namespace

// One run of CHECK TABLE.
struct ha_shale::Check {
  THD *thd;
  std::string table;  // its name, for the error log
  bool quick;
  bool extended;
  SnapshotHandle snapshot;
  std::vector<Sum> expected;  // of each index, by place
  bool has_rows = true;       // all could be read: indexes can be compared with them
  uint64_t damaged_rows = 0;  // of those: nobody knows what they have in the indexes
  uint64_t found = 0;         // what is wrong
  // Of the index that is looked at.
  KeySet keys;                // that rows give, if they give many
  uint64_t unexplained = 0;   // entries that no row was found to give

  bool is_killed() const { return thd_kill_level(thd) != THD_IS_NOT_KILLED; }

  void tell(const std::string &text) {
    if (++found <= kTold) {
      push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG, "SHALE: %s",
                          text.c_str());
      log_error("table " + table + ": " + text);
    }
  }

  // A file that is damaged is a finding, and the check goes on with what else there is.
  Error unless_damaged(Error error, const std::string &what) {
    if (error != HA_ERR_CRASHED_ON_USAGE) return error;
    tell(what + " cannot be read to the end: " + error.text());
    return 0;
  }

  using Visit = std::function<Error(std::string_view, std::string_view)>;

  // Tells `visit` each entry of a tree.
  Error each(const shale_tree *tree, const Visit &visit) { return each_in(tree, {}, {}, visit); }

  // From `lower` up to `upper`, which is no bound if it is empty.
  Error each_in(const shale_tree *tree, std::string_view lower, std::string_view upper,
              const Visit &visit) {
    shale_scan *begun = nullptr;
    const char *from = lower.empty() ? nullptr : lower.data();
    const char *to = upper.empty() ? nullptr : upper.data();
    shale_error *failure = shale_scan_new(tree, snapshot.get(), from, lower.size(), to,
                                          upper.size(), false, &begun);
    if (failure != nullptr) return shale_sql::consume_error(failure);
    ScanHandle scan(begun);
    Error error = shale_sql::consume_error(move_scan(begun, SHALE_FIRST));
    while (!error && at_row(begun)) {
      // A row may be large, and its texts are looked at.
      if (is_killed()) return HA_ERR_ABORTED_BY_USER;
      size_t key_len = 0, value_len = 0;
      const void *key = shale_scan_key(begun, &key_len), *value = nullptr;
      error = shale_sql::consume_error(shale_scan_value(begun, &value, &value_len));
      if (error) return error;
      error = visit({static_cast<const char *>(key), key_len},
                    {static_cast<const char *>(value), value_len});
      if (!error) error = shale_sql::consume_error(move_scan(begun, SHALE_NEXT));
    }
    return error;
  }

  // The value of a key; none if it is not there.
  Error get(const shale_tree *tree, std::string_view key, BytesHandle *value) {
    shale_bytes *bytes = nullptr;
    shale_error *error = shale_get(tree, snapshot.get(), key.data(), key.size(), &bytes);
    value->reset(bytes);
    return shale_sql::consume_error(error);
  }
};

// Unpacks a row; false: it is damaged.
bool ha_shale::unpack_entry(uchar *buf, std::string_view key, std::string_view value) {
  is_.primary.assign(key);
  if (!rows_->unpack(is_.primary, value, nullptr, buf)) return false;
  if (table->vfield != nullptr) {
    // A value that is cut is no fault of the table: CHECK TABLE would show the warning as one.
    Dummy_error_handler quiet;
    ha_thd()->push_internal_handler(&quiet);
    int error = table->update_virtual_fields(this, VCOL_UPDATE_FOR_READ);
    ha_thd()->pop_internal_handler();
    if (error != 0) return false;
  }
  return true;
}

// The same, and packs its keys into is_.
bool ha_shale::row_of_entry(uchar *buf, std::string_view key, std::string_view value) {
  if (!unpack_entry(buf, key, value)) return false;
  pack_keys(buf, &is_);
  return shared_->def->hidden_key || is_.primary == key;
}

Error ha_shale::check_rows(Check *check) {
  check->expected.assign(indexes_.size(), Sum());
  return check->each(primary().tree, [&](std::string_view key, std::string_view value) -> Error {
    if (check->quick) {
      for (Sum &sum : check->expected) sum.count++;
      return 0;
    }
    if (!row_of_entry(table->record[0], key, value)) {
      check->damaged_rows++;
      check->tell("the row of primary key " + hex(key) + " is damaged");
      return 0;
    }
    for (size_t place = 1; place < indexes_.size(); place++) {
      if (indexes_[place].many == nullptr) {
        check->expected[place].add(is_.keys[place], is_.values[place]);
        continue;
      }
      for (const ManyEntry &entry : is_.many[place]) {
        check->expected[place].add(entry.key, entry.value);
      }
    }
    return 0;
  });
}

Error ha_shale::check_index(Check *check, size_t place) {
  Sum there;
  auto add = [&](std::string_view key, std::string_view value) {
    if (check->quick) {
      there.count++;
    } else {
      there.add(key, value);
    }
    return 0;
  };
  Error error = check->each(indexes_[place].tree, add);
  if (error || !check->has_rows) return error;
  const Sum &expected = check->expected[place];
  // How many entries rows have of it is not known without them.
  if (check->quick && indexes_[place].many != nullptr) return 0;
  std::string name = table->key_info[indexes_[place].number].name.str;
  bool same = there.count == expected.count && there.hash == expected.hash;
  if (same && !check->extended) return 0;
  if (there.count != expected.count && check->damaged_rows == 0) {
    check->tell("index " + name + " has " + std::to_string(there.count) + " entries for " +
                std::to_string(expected.count) +
                (indexes_[place].many == nullptr ? " rows" : " that the rows give"));
  }
  if (check->quick) return 0;
  uint64_t before = check->found;
  check->unexplained = there.count;
  if (indexes_[place].many != nullptr) check->keys.begin(expected.count);
  if ((error = find_missing(check, place))) return error;
  if (check->unexplained != 0 && (error = find_superfluous(check, place))) return error;
  const KEY &key = table->key_info[indexes_[place].number];
  if (check->extended && key.algorithm == HA_KEY_ALG_LONG_HASH) error = find_equal(check, place);
  if (check->extended && key.without_overlaps) error = find_overlaps(check, place);
  if (error) return error;
  if (!same && before == check->found && check->damaged_rows == 0) {
    check->tell("index " + name + " is not what the rows say");
  }
  return 0;
}

Error ha_shale::find_missing(Check *check, size_t place) {
  const Index &index = indexes_[place];
  std::string name = table->key_info[index.number].name.str;
  return check->each(primary().tree, [&](std::string_view key, std::string_view value) -> Error {
    if (!row_of_entry(table->record[0], key, value)) return 0;
    const auto look = [&](std::string_view wanted, std::string_view wanted_value) -> Error {
      if (check->is_killed()) return HA_ERR_ABORTED_BY_USER;
      BytesHandle entry;
      if (Error error = check->get(index.tree, wanted, &entry)) return error;
      if (!entry) {
        check->tell("index " + name + " has no entry for the row of primary key " + hex(key));
      } else if (view_of(entry) != wanted_value) {
        check->tell("index " + name + " has a wrong entry for the row of primary key " + hex(key));
      }
      // One of a unique key may be another row's.
      const bool is_own = entry && (index.many != nullptr || view_of(entry) == wanted_value);
      if (is_own) check->unexplained--;
      return 0;
    };
    if (index.many == nullptr) return look(is_.keys[place], is_.values[place]);
    for (const ManyEntry &entry : is_.many[place]) {
      check->keys.add(entry.key);
      if (Error error = look(entry.key, entry.value)) return error;
    }
    return 0;
  });
}

// The words of a row cost as much as they are, and are not made for each of its entries: the set of
// all rows' keys tells which are in no row. Only if some of these seem to be in the set, by chance,
// each entry is looked up in its row.
Error ha_shale::find_superfluous(Check *check, size_t place) {
  const Index &index = indexes_[place];
  std::string name = table->key_info[index.number].name.str;
  bool by_set = index.many != nullptr;
  const auto is_of_row = [&](std::string_view key) {
    if (index.many == nullptr) return is_.keys[place] == key;
    const ManyEntries &all = is_.many[place];
    const auto is_before = [](const ManyEntry &one, std::string_view of) { return one.key < of; };
    const auto at = std::lower_bound(all.begin(), all.end(), key, is_before);
    return at != all.end() && at->key == key;
  };
  const auto look = [&](std::string_view key, std::string_view value) -> Error {
    // The first look has told of those that are not in the set.
    if (index.many != nullptr && check->keys.may_have(key) == by_set) return 0;
    if (by_set && check->unexplained != 0) check->unexplained--;
    std::string_view primary_key;
    const bool good = index.many == nullptr ? index.codec->primary_of(key, value, &primary_key)
                                            : index.many->primary_of(key, value, &primary_key);
    if (!good) {
      check->tell("an entry of index " + name + " is damaged: key " + hex(key));
      return 0;
    }
    BytesHandle row;
    if (Error error = check->get(primary().tree, primary_key, &row)) return error;
    if (!row) {
      check->tell("index " + name + " has an entry, key " + hex(key) +
                  ", of a row that is not there, primary key " + hex(primary_key));
      return 0;
    }
    uchar *record = table->record[0];
    const bool is_wrong =
        by_set ? unpack_entry(record, primary_key, view_of(row))
               : row_of_entry(record, primary_key, view_of(row)) && !is_of_row(key);
    if (is_wrong) {
      check->tell("index " + name + " has an entry, key " + hex(key) +
                  ", that the row of primary key " + hex(primary_key) + " does not have");
    }
    return 0;
  };
  Error error = check->each(index.tree, look);
  if (error || !by_set || check->unexplained == 0) return error;
  by_set = false;
  return check->each(index.tree, look);
}

// A hash-unique key: rows with one hash lie together, and are compared each with those before it.
// There are few of one hash, unless they are equal: then the first of them ends the search.
Error ha_shale::find_equal(Check *check, size_t place) {
  const Index &index = indexes_[place];
  const KEY &key_info = table->key_info[index.number];
  std::string hash;
  bool any = false;
  return check->each(index.tree, [&](std::string_view key, std::string_view value) -> Error {
    std::string_view row_key;
    uchar *record = table->record[0];
    // What is damaged has been told.
    if (!index.codec->unpack(key, value, record) ||
        !index.codec->primary_of(key, value, &row_key)) {
      return 0;
    }
    if (key_info.key_part->field->is_null()) return 0;
    std::string_view own = key.substr(0, key.size() - row_key.size());
    bool first = !any || own != hash;
    any = true;
    hash.assign(own);
    if (first) return 0;
    BytesHandle row;
    if (Error error = check->get(primary().tree, row_key, &row)) return error;
    if (!row || !row_of_entry(record, row_key, view_of(row))) return 0;
    bool equal = false;
    if (Error error = find_equal_before(check, place, hash, key, &equal)) return error;
    if (equal) {
      check->tell("unique index " + std::string(key_info.name.str) +
                  " has the same for two rows: primary key " + hex(row_key) + " is the second");
    }
    return 0;
  });
}

// Whether a row of an entry with this hash, before `key`, equals the one in the record.
Error ha_shale::find_equal_before(Check *check, size_t place, std::string_view hash,
                                std::string_view key, bool *found) {
  const Index &index = indexes_[place];
  OtherRow mine(table, table->key_info[index.number]);
  auto look = [&](std::string_view at, std::string_view value) -> Error {
    std::string_view row_key;
    BytesHandle row;
    if (!index.codec->primary_of(at, value, &row_key)) return 0;
    if (Error error = check->get(primary().tree, row_key, &row)) return error;
    if (row && row_of_entry(table->record[0], row_key, view_of(row))) *found = mine.equals_record();
    return *found ? Error(kSeenEnough) : Error();
  };
  Error error = check->each_in(index.tree, hash, key, look);
  return error == kSeenEnough ? Error() : std::move(error);
}

// A key WITHOUT OVERLAPS: the periods of the rows that are equal before them lie together, in the
// order of their ends.
Error ha_shale::find_overlaps(Check *check, size_t place) {
  const Index &index = indexes_[place];
  std::string name = table->key_info[index.number].name.str;
  std::string columns, last_end;
  bool any = false;
  return check->each(index.tree, [&](std::string_view key, std::string_view value) -> Error {
    std::string_view primary;
    std::vector<size_t> ends;
    if (!index.codec->primary_of(key, value, &primary) || !index.codec->part_ends(key, &ends)) {
      return 0;
    }
    // One with a NULL is in nobody's way; it has the primary key in its own. So is one of history.
    if (ends.size() < 3 || ends.back() != key.size()) return 0;
    if (table->versioned()) {
      if (!index.codec->unpack(key, value, table->record[0])) return 0;
      if (!table->vers_end_field()->is_max()) return 0;
    }
    size_t column = ends[ends.size() - 3], end = ends[ends.size() - 2];
    bool same = any && key.substr(0, column) == columns;
    any = true;
    if (same && key.substr(end) < last_end) {
      check->tell("unique index " + name + " has periods that overlap: primary key " +
                  hex(primary) + " is the second");
    }
    columns.assign(key.substr(0, column));
    last_end.assign(key.substr(column, end - column));
    return 0;
  });
}

int ha_shale::check(THD *thd, HA_CHECK_OPT *options) {
  Check check;
  check.thd = thd;
  check.table = std::string(table_share->db.str) + "." + table_share->table_name.str;
  check.quick = (options->flags & T_QUICK) != 0;
  check.extended = (options->flags & T_EXTEND) != 0;
  shale_snapshot *snapshot = nullptr;
  Error error = shale_sql::consume_error(shale_snapshot_new(engine().db, &snapshot, nullptr));
  check.snapshot.reset(snapshot);
  MY_BITMAP *old = tmp_use_all_columns(table, &table->read_set);
  thd_progress_init(thd, static_cast<uint>(indexes_.size()));
  if (!error) error = check_rows(&check);
  check.has_rows = !error;
  error = check.unless_damaged(std::move(error), "the table's rows (its primary key)");
  for (size_t place = 1; !error && place < indexes_.size(); place++) {
    thd_progress_next_stage(thd);
    std::string name = table->key_info[indexes_[place].number].name.str;
    error = check.unless_damaged(check_index(&check, place), "index " + name);
  }
  thd_progress_end(thd);
  tmp_restore_column_map(&table->read_set, old);
  if (!error && check.extended) {
    ErrorHandle damage(shale_verify(engine().db, nullptr));
    if (damage) check.tell(shale_error_text(damage.get()));
  }
  if (error == HA_ERR_ABORTED_BY_USER) return HA_ADMIN_FAILED;
  if (error) {
    check.tell("the check did not come to its end: " + error.text());
    return HA_ADMIN_FAILED;
  }
  if (check.found > kTold) {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG,
                        "SHALE: %llu findings in all; the first %u are listed",
                        static_cast<ulonglong>(check.found), kTold);
  }
  return check.found == 0 ? HA_ADMIN_OK : HA_ADMIN_CORRUPT;
}

int ha_shale::optimize(THD *thd, HA_CHECK_OPT *options) {
  for (const Index &index : indexes_) {
    if (thd_killed(thd)) return HA_ADMIN_FAILED;
    shale_error *found = shale_compact(engine().db, index.tree, nullptr, 0, nullptr, 0);
    if (Error error = shale_sql::consume_error(found)) {
      push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_GET_ERRMSG, "SHALE: %s",
                          error.text().c_str());
      return error == HA_ERR_CRASHED_ON_USAGE ? HA_ADMIN_CORRUPT : HA_ADMIN_FAILED;
    }
  }
  return analyze(thd, options);
}
