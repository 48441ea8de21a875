// A handler: one use of one table by one connection. Calls are in files by family: ha_open (open,
// close, locks, flags), ha_errors, ha_scan, ha_ahead, ha_multi, ha_spatial, ha_words (reading),
// ha_write, ha_versions, ha_unique, ha_load, ha_rewrite, ha_references, ha_cascade, ha_online
// (writing), ha_ddl (create, drop, rename, empty), ha_foreign (foreign keys for the server),
// ha_alter (in place), ha_info (statistics), ha_check (CHECK and OPTIMIZE TABLE), ha_query_cache,
// ha_sequence, ha_move (a table as a file).
#pragma once

#include "server.h"

#include "codec/key_codec.h"
#include "codec/row_codec.h"
#include "engine/catalog.h"
#include "engine/cursor.h"
#include "handler/ahead.h"
#include "handler/asked.h"
#include "handler/load.h"
#include "handler/online_entries.h"
#include "handler/row_keys.h"
#include "handler/row_write.h"
#include "handler/search.h"
#include "tables/shared_table.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shale_sql {
class TableSource;
class Trx;
class WordCodec;
struct FoundWords;
struct NewIndex;
struct SampleSize;
struct TableCopy;
class CellSearch;
}

class ha_shale final : public handler {
 public:
  // Waits until nobody who has written to the tree is still under way; the error is told.
  static shale_sql::Error wait_for_writers(THD *thd, const shale_tree *tree);

  ha_shale(handlerton *hton, TABLE_SHARE *share);

  const char *index_type(uint index) override;
  Table_flags table_flags() const override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return 3072; }
  uint max_supported_key_part_length() const override { return 3072; }
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }

  // ha_open
  int open(const char *name, int mode, uint test_if_locked) override;
  int close() override;
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, enum thr_lock_type type) override;
  int external_lock(THD *thd, int type) override;
  int start_stmt(THD *thd, thr_lock_type type) override;
  int reset() override;
  int extra(enum ha_extra_function operation) override;
  // None of the server's own locks of tables: metadata locks and locks of rows are enough.
  uint lock_count() const override { return 0; }
  void init_table_handle_for_HANDLER() override;
  handler *clone(const char *name, MEM_ROOT *mem_root) override;

  // ha_errors
  bool get_error_message(int error, String *text) override;
  void print_error(int error, myf flags) override;

  // ha_scan
  int rnd_init(bool scan) override;
  int rnd_end() override;
  int rnd_next(uchar *buf) override;
  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *buf, const uchar *key, key_part_map parts,
                     enum ha_rkey_function how) override;
  int index_next(uchar *buf) override;
  int index_prev(uchar *buf) override;
  int index_first(uchar *buf) override;
  int index_last(uchar *buf) override;
  int prepare_range_scan(const key_range *start, const key_range *end) override;
  int index_next_same(uchar *buf, const uchar *key, uint length) override;
  int read_range_first(const key_range *start, const key_range *end, bool eq_range,
                       bool sorted) override;
  Item *idx_cond_push(uint index, Item *condition) override;
  bool rowid_filter_push(Rowid_filter *filter) override;

  // ha_position
  int rnd_pos(uchar *buf, uchar *pos) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *a, const uchar *b) override;

  // ha_words
  int ft_init() override;
  FT_INFO *ft_init_ext(uint flags, uint index, String *text) override;
  int ft_read(uchar *buf) override;

  // ha_multi
  ha_rows multi_range_read_info_const(uint index, RANGE_SEQ_IF *ranges, void *parameter,
                                      uint count, uint *bytes, uint *flags,
                                      Cost_estimate *cost) override;
  ha_rows multi_range_read_info(uint index, uint count, uint rows, uint parts, uint *bytes,
                                uint *flags, Cost_estimate *cost) override;
  int multi_range_read_init(RANGE_SEQ_IF *ranges, void *parameter, uint count, uint mode,
                            HANDLER_BUFFER *buffer) override;
  int multi_range_read_next(range_id_t *range) override;
  int multi_range_read_explain_info(uint mode, char *text, size_t size) override;

  // ha_scan
  void unlock_row() override;
  void try_semi_consistent_read(bool yes) override;
  bool was_semi_consistent_read() override { return semi_ == Semi::kDid; }

  // ha_write
  int write_row(const uchar *buf) override;
  int update_row(const uchar *old_row, const uchar *new_row) override;
  int delete_row(const uchar *buf) override;
  int delete_all_rows() override { return HA_ERR_WRONG_COMMAND; }
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted,
                          ulonglong *first, ulonglong *reserved) override;
  int reset_auto_increment(ulonglong value) override;
  bool autoinc_lock_mode_stmt_unsafe() const override;
  void update_create_info(HA_CREATE_INFO *info) override;

  // ha_ddl
  int create(const char *name, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  ulonglong table_version() const override;

  // ha_foreign
  char *get_foreign_key_create_info() override;
  void free_foreign_key_create_info(char *text) override;
  int get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  int get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  bool referenced_by_foreign_key() const noexcept override;
  bool can_switch_engines() override;
  bool get_foreign_dup_key(char *table_name, uint table_bytes, char *key_name,
                           uint key_bytes) override;

  // ha_alter
  enum_alter_inplace_result check_if_supported_inplace_alter(
      TABLE *altered, Alter_inplace_info *info) override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;
  bool can_convert_nocopy(const Field &field, const Column_definition &is) const override;
  Compare_keys compare_key_parts(const Field &old_field, const Column_definition &new_field,
                                 const KEY_PART_INFO &old_part,
                                 const KEY_PART_INFO &new_part) const override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint changes) override;

  // ha_info
  int info(uint what) override;
  enum row_type get_row_type() const override;
  ha_rows records_in_range(uint index, const key_range *low, const key_range *high,
                           page_range *pages) override;
  ha_rows estimate_rows_upper_bound() override { return HA_POS_ERROR; }
  double scan_time() override;
  double read_time(uint index, uint ranges, ha_rows rows) override;
  int analyze(THD *thd, HA_CHECK_OPT *options) override;

  // ha_check
  int optimize(THD *thd, HA_CHECK_OPT *options) override;
  int check(THD *thd, HA_CHECK_OPT *options) override;

  // ha_query_cache
  uint8 table_cache_type() override { return HA_CACHE_TBL_ASKTRANSACT; }
  my_bool register_query_cache_table(THD *thd, const char *name, uint length,
                                     qc_engine_callback *callback, ulonglong *token) override;

  // ha_sequence
  int update_first_row(const uchar *new_row) override;

  // ha_move
  int discard_or_import_tablespace(my_bool discard) override;

 private:
  // One index as this handler uses it.
  struct Index {
    uint number;  // in the table's definition; MAX_KEY: the hidden primary key
    std::unique_ptr<shale_sql::KeyCodec> codec;
    // Instead of it, of an index with any number of entries of a row.
    std::unique_ptr<shale_sql::ManyCodec> many;
    shale_tree *tree = nullptr;
    bool unique = false;
    // Of each column, by its number: whether an entry has the beginning of it only.
    std::vector<uint64_t> beginnings;
    bool computed = false;  // one of its columns is in no row
    bool is_spatial() const { return many == nullptr && codec->geometries() != nullptr; }
    bool lacks_geometry(const uchar *row) const;
  };

  struct CellScan;
  struct FoundCells;

  // Where an index is read on after no row was found: at a bound of the scan.
  enum class Gap { kNone, kLower, kUpper };
  struct Scan {
    shale_sql::Cursor cursor;
    const Index *index = nullptr;
    // The connection's, while there is a scan, and which of its transactions the scan is of.
    shale_sql::Trx *trx = nullptr;
    uint64_t of = 0;
    uint64_t actions = 0;  // of foreign keys, as of its begin
    std::string lower, upper;
    std::string key;                 // that was searched, or is searched next
    bool is_of_prefix = false;       // of the rows that begin with a prefix
    bool ends_in_range = false;      // it ends where the server's range does
    bool begins_in_range = false;    // the same of one that is read backward
    bool may_be_outdated = false;    // what a plain read finds in an index
    bool is_of_before = false;       // of an earlier statement: HANDLER holds it
    bool has_shown_sequence = false;  // the one row
    bool is_run_again = false;       // from index_init to index_end
    Gap gap = Gap::kNone;
    std::shared_ptr<CellScan> cells;  // of a search in a SPATIAL index
    shale_sql::Search search;         // the last by a key
  };

  // The row last read. Long values of the record point into it.
  struct LastRow {
    uint64_t actions = 0;  // of foreign keys, as of then
    std::string primary;
    std::string value;
    std::string entry;                  // the value of the entry of an index, read by its key
    std::vector<std::string> computed;  // long values that are in no row, or are new
    // What it has locked, for unlock_row: in the primary index, and in another one.
    struct Locked {
      const Index *index = nullptr;
      std::string key;
    };
    Locked locked_row, locked_entry;

    // Texts are where they were when they are swapped back, also short ones.
    void swap(LastRow *other);
  };

  int open_indexes(), open_anew_if_replaced();
  const Index &primary() const { return indexes_[0]; }
  const Index &of_number(uint number) const { return indexes_[places_[number]]; }
  bool is_primary(const Index &index) const { return &index == &indexes_[0]; }
  bool is_enough(const Index &index) const;
  bool has_beginnings(const Index &index) const;
  bool computes(const Index &index, const uchar *buf) const;
  int compute(const Index &index, uchar *buf);
  int compute_quietly(enum_vcol_update_mode mode);
  int compute_quietly();
  int compute_in(const uchar *row, bool keeps);
  void keep_computed(bool for_write);
  bool is_computed_early(const uchar *buf) const;

  // Reading (ha_scan)
  int begin_scan(const Index &index, std::string_view lower, std::string_view upper);
  int open_cursor(const Index &index, std::string_view lower, bool has_upper,
                  std::string_view upper);
  int resume_scan(shale_txn *txn, bool backward, bool *found);
  bool is_scan_current() const;
  int step(uchar *buf, bool backward);
  int first_step(uchar *buf, bool backward);
  int move(uchar *buf, bool backward);
  int fill_row(uchar *buf, bool *skip);
  int decode_entry(const Index &index, uchar *buf, std::string_view key, std::string_view value,
                    std::string_view *primary_key, bool *skip);
  int filter_out(std::string_view primary_key, bool *skip);
  int damaged_row();
  int damaged_entry(const Index &index);
  int entry_without_row(const Index &index);
  int row_is_missing(const Index &index, bool *skip);
  int fill_from_primary(uchar *buf, std::string_view key, std::string_view value);
  int get_value(const Index &index, std::string_view key, int missing, std::string_view *value);
  int read_by_primary(std::string_view key, uchar *buf, int missing);
  int read_by_entry(const Index &index, std::string_view key, uchar *buf, int missing);
  int read_entry_row(const Index &index, uchar *buf, int missing);
  int finish_read(int error, uchar *buf);
  void note_locked(const Index &index, std::string_view key);
  void forget_locked() { last_.locked_row.index = last_.locked_entry.index = nullptr; }

  // Positions (ha_position)
  uint position_bytes() const;
  void set_ref(std::string_view primary_key, uchar *to);
  std::string_view key_of_ref(const uchar *from) const;

  // Searching words (ha_words)
  int text_of_row(const shale_sql::WordCodec &codec, std::string_view primary_key,
                  std::string *text, std::vector<size_t> *begins, bool *found);
  FT_INFO *search_to_read() const;
  int row_of_search(std::string_view primary_key, std::string *value, std::vector<uchar> *record,
                    bool *found);
  int still_matches(const shale_sql::FoundWords &search, bool *matches);
  int search_words(uint flags, const Index &index, std::string_view text,
                   shale_sql::FoundWords *found);

  // Searches in SPATIAL indexes (ha_spatial)
  int index_read_cells(const Index &index, uchar *buf, const uchar *tuple,
                       enum ha_rkey_function how);
  int open_cells(const Index &index);
  int begin_scan_of_cells(const Index &index, std::string lower, std::string upper);
  int next_in_cells(shale_txn *txn, bool *found);
  int step_of_cells(shale_txn *txn, bool *found);
  int leap_through_cells(shale_txn *txn, bool *found);
  int lock_cells(shale_txn *txn, bool *found);
  int find_classes(const Index &index, uint64_t *there);
  bool take_found(const Index &index, const uchar *window, enum ha_rkey_function how);
  int begin_estimate(const Index &index, shale_sql::ScanHandle *scan);
  ha_rows cells_in_range(const Index &index, const key_range *window);
  ha_rows estimate_of_rest(const Index &index, const shale_sql::CellSearch &search,
                           const std::string &from, uint64_t matches, unsigned steps);
  static int geometry_is_missing(int error);
  int check_geometries(const uchar *row);

  // Reading ahead (ha_ahead)
  bool reads_plainly();
  void read_ahead();
  size_t first_ahead() const;
  void end_scan() {
    scan_.cursor.end();
    scan_.trx = nullptr;
    scan_.is_of_prefix = scan_.ends_in_range = scan_.is_of_before = false;
    scan_.cells.reset();
    ahead_.clear();
    ranges_ = shale_sql::Ranges();
  }
  int add_entries(uchar *buf, shale_txn *txn, range_id_t range);
  int fetch_rows(shale_txn *txn), fill_ahead(uchar *buf, shale_txn *txn);
  int step_ahead(uchar *buf);

  // Reading several ranges (ha_multi)
  bool may_read_together(uint index, uint flags);
  int begin_range(shale_txn *txn);
  int fill_ranges(uchar *buf, shale_txn *txn);
  int find_points(uchar *buf, shale_txn *txn);
  int step_ranges(uchar *buf, range_id_t *range);
  int step_asked(uchar *buf);
  int stream(uchar *buf, bool *shown);
  bool is_skipped(range_id_t range);

  // Writing (ha_write)
  using RowKeys = shale_sql::RowKeys;
  void pack_keys(const uchar *row, RowKeys *keys) const;
  void pack_primary(const uchar *row, RowKeys *keys) const;
  void pack_entries(const uchar *row, const uchar *other, RowKeys *keys) const;
  int pack_change(const uchar *old_row, const uchar *new_row);
  bool watches_rows();
  int compute_for_keys(const uchar *row);
  bool wants_blobs(const MY_BITMAP *wanted) const;
  const MY_BITMAP *wanted_columns() const;
  bool changes_one_row(uint number) const;
  int insert_row(const uchar *row, const RowKeys &keys);
  shale_action insert_action() const;
  int add_entry(const uchar *row, size_t place, const RowKeys &keys);
  void add_row(const uchar *row, const RowKeys &keys, shale_action action);
  void change_entries(size_t place, const shale_sql::ManyEntries &was,
                      const shale_sql::ManyEntries &is);
  int add_change(const uchar *old_row, const uchar *new_row, const RowKeys &was, const RowKeys &is);
  void keep_entries(const RowKeys &was, const RowKeys &is);
  int check_unchanged(const std::string &primary_key, const uchar *row);
  int store_row(const uchar *row), new_hidden_key(std::string *key);
  // `past`: a row that the change leaves in the past, or none.
  int change_row(const uchar *old_row, const uchar *new_row, const uchar *past);
  int duplicate(size_t place, std::string_view primary);
  int begin_row();
  int write_part();
  int end_row(int error);
  int note_applied(int error, shale_sql::RowWrite::Refused *found);
  void keep_refused(shale_sql::RowWrite::Refused *found);
  bool take_refused(std::string_view key, shale_sql::BytesHandle *value);

  // Versions by ids of transactions (ha_versions)
  bool writes_versions() const;
  int insert_version(const uchar *row), pack_past(const uchar *row), add_past(const uchar *row);
  int update_version(const uchar *old_row, const uchar *new_row);
  int end_version(const uchar *row, bool *ended);

  // Keys that the server checks itself (ha_unique)
  struct Place {
    std::string_view place;       // the beginning of the entry's key
    bool is_period = false;
    std::string_view begin, end;  // of the period, as in keys
  };
  int lock_place(const Index &index, std::string_view place);
  int begin_check(const Index &index, const uchar *tuple, enum ha_rkey_function how,
                  shale_sql::Search *search);
  bool place_of_entry(size_t place, const RowKeys &keys, Place *found) const;
  int lock_place_of(size_t place, const RowKeys &keys);
  int check_entry(const uchar *row, size_t place, const RowKeys &keys);

  // Foreign keys (ha_references)
  int begin_references();
  bool has_parents(size_t place) const;
  bool has_children(size_t place) const;
  int no_parent(const shale_sql::ForeignKey &key);
  int has_child(const shale_sql::ForeignKey &key);
  void forget_parents() {
    if (references_ != nullptr) forget_own_parents();
  }
  void forget_own_parents();
  int parent_is_missing(const shale_sql::RowWrite::Required &parent);
  int look_up_parent(const shale_sql::Link &link, const std::string &key, bool *found);
  int scan_other(const shale_sql::Link &link, const std::string &key, bool *found);
  // Of tables without foreign keys these cost a comparison.
  int check_parents(size_t place, const RowKeys &keys, const uchar *row) {
    return references_ == nullptr ? 0 : check_parents_of(place, keys, row);
  }
  int check_children(size_t place, const RowKeys &keys, const uchar *was, const uchar *is) {
    return references_ == nullptr ? 0 : check_children_of(place, keys, was, is);
  }
  bool is_past(const uchar *row) const;
  bool has_null_of(const shale_sql::ForeignKey &key, const uchar *row) const;
  int check_parents_of(size_t place, const RowKeys &keys, const uchar *row);
  int check_children_of(size_t place, const RowKeys &keys, const uchar *was, const uchar *is);
  static bool is_changed(const Field *field, const uchar *was, const uchar *is);
  bool changes_referenced(const shale_sql::Link &link, const uchar *was, const uchar *is) const;
  int check_late_children(const RowKeys &keys, const uchar *was, const uchar *is);
  int end_row_of_parent(int error, const RowKeys &keys, const uchar *was, const uchar *is);
  int prove(const shale_sql::ForeignKeys::List &keys, const std::string &known_as,
            const shale_sql::TableDef &def);
  int prove_entries(const shale_sql::Link &link, const shale_sql::ForeignKey &told,
                    const shale_tree *tree, const shale_sql::PastRows &past);

  // Parents of rows that are written next (ha_parents)
  struct ParentsAhead {
    ha_rows rows = 0;  // of the statement; 0: that is not known
    ha_rows written = 0, asked = 0;
    // So many statements pass before it is looked again, after one of which all was in memory.
    unsigned pause = 0, left = 0;
    struct Of;
    void begin(ha_rows of_statement) {
      rows = of_statement;
      written = asked = 0;
    }
  };
  void ask_for_parents();
  void add_parent_ahead(ParentsAhead::Of *of, const std::string &own);

  // Actions of foreign keys (ha_cascade)
  shale_sql::ForeignAction action_of(const shale_sql::Link &link, const uchar *is) const;
  // A parent's row before and after an update, in records of its table; `is` is none if it goes.
  struct ParentRow {
    TABLE *table;
    const uchar *was, *is;
  };
  int cascade(const shale_sql::Link &link, const std::string &key, const ParentRow &row);
  int follow(const shale_sql::Link &link, const std::string &key, const ParentRow &parent);
  int follow_rows(const shale_sql::Link &link, const std::string &key, const ParentRow &parent);
  int too_deep(const shale_sql::ForeignKey &key);
  int change_child(const shale_sql::Link &link, const std::string &of_parent,
                   const ParentRow &parent);
  bool has_entry(size_t place, const std::string &begin);
  void compute_for_write();
  int end_child();
  int keep_past();
  bool ends_at_action(const uchar *old_row, const uchar *new_row);
  static bool has_same_texts(const TABLE *table, const KEY &key, const uchar *was, const uchar *is);
  bool has_same_texts(const uchar *was, const uchar *is) const;

  // Rows that others have changed since the snapshot (ha_rewrite)
  int begin_plain_read(shale_sql::Trx *trx);
  int is_outdated(const Index &index, std::string_view key, std::string_view primary_key,
                  bool *outdated);

  // Altering in place (ha_alter), and indexes that are being built meanwhile (ha_online)
  using Online = shale_sql::OnlineEntries;
  void publish_building(TABLE *altered, Alter_inplace_info *info,
                        const std::vector<shale_sql::NewIndex> &indexes,
                        std::shared_ptr<shale_sql::ChangedRows> rows);
  void learn_building();
  bool is_building() const { return shared_->building.number() != 0; }
  void add_building(const uchar *old_row, std::string_view old_primary, const uchar *new_row,
                    std::string_view new_primary, std::vector<Online::Change> *changes);
  void undo_alter(inplace_alter_handler_ctx *begun);
  bool catch_up_others(TABLE *altered, Alter_inplace_info *info);
  void tell_altering(int error);
  void tell_filling(TABLE *altered, inplace_alter_handler_ctx *begun, int error);
  bool finish_filling(TABLE *altered, inplace_alter_handler_ctx *begun, bool ignores);

  // The row of a sequence (ha_sequence)
  bool is_sequence() const;
  int read_sequence(uchar *buf);
  int write_sequence(const uchar *buf, bool first);

  // Copying into a table that nobody sees, and loading in parts (ha_load)
  using Load = shale_sql::Load;
  void begin_words(ha_rows rows);
  int add_words(const uchar *row, std::string_view primary_key);
  int write_words(size_t most);
  int end_words();
  void begin_copy(bool ignore);
  int end_copy();
  int prove_copy();
  int load_row(const uchar *row, const RowKeys &keys);
  int show_duplicate(size_t place);
  int end_part(size_t bytes);
  void use_number(const uchar *row);
  int look_up_above(uint64_t *above);
  int look_up_number();

  // New trees in place of the old ones (ha_ddl). The definition gets their id; `fill` may put rows
  // there before anybody sees them.
  using Fill = std::function<int(const shale_sql::TableDef &,
                                 const std::vector<shale_sql::TreeHandle> &)>;
  int replace_trees(shale_sql::TableDef def, const Fill &fill);
  int replace_trees(std::vector<shale_sql::Catalog::Replaced> replaced, const Fill &fill);
  int truncate_partitions();
  int open_replaced();
  static bool has_children_elsewhere(THD *thd, const std::string &path);

  // A table as a file (ha_move)
  int tell_discarded();
  int wait_for_prepared(THD *thd);
  int export_rows(THD *thd);
  void end_export();
  int discard_rows();
  int import_rows();
  int refuse_import(const shale_sql::Error &error);
  int import_into(shale_sql::TableDef def, const shale_sql::TableCopy &copy,
                  shale_sql::TableSource *source);

  // Statistics (ha_info)
  struct Shown {
    uint row_bytes_guess = 0;         // before compression
    uint64_t statistics_version = 0;  // that the server has in its own structures
  };
  int info_of_size(uint what, shale_sql::TableSize *found);
  void look_if_due(const shale_sql::TableSize *known);
  void fill_rows_per_key();
  int look_at_indexes(const shale_sql::SampleSize &size);
  void count_change(int rows);

  // Checking (ha_check)
  struct Check;
  bool unpack_entry(uchar *buf, std::string_view key, std::string_view value);
  bool row_of_entry(uchar *buf, std::string_view key, std::string_view value);
  shale_sql::Error check_rows(Check *check);
  shale_sql::Error check_index(Check *check, size_t place);
  shale_sql::Error find_missing(Check *check, size_t place);
  shale_sql::Error find_superfluous(Check *check, size_t place);
  shale_sql::Error find_equal(Check *check, size_t place);
  shale_sql::Error find_equal_before(Check *check, size_t place, std::string_view hash,
                                     std::string_view key, bool *found);
  shale_sql::Error find_overlaps(Check *check, size_t place);

  shale_sql::Trx *trx();

  // The number of an error, whose text is kept with the connection for get_error_message.
  int note(shale_sql::Error error) {
    return error ? note_failure(std::move(error)) : 0;
  }
  int note_failure(shale_sql::Error error);
  int consume_error(shale_error *error) { return note(shale_sql::consume_error(error)); }
  int failed(int number, std::string text) {
    return note_failure(shale_sql::Error(number, std::move(text)));
  }
  int lock_mode() const { return locking_.mode; }

  std::shared_ptr<shale_sql::SharedTable> shared_;
  std::vector<Index> indexes_;    // the primary key first
  std::vector<size_t> places_;    // of the server's numbers in indexes_
  bool has_many_ = false;         // one of them has many entries of a row
  // One of them is of columns that are in no row, and of such texts.
  bool has_computed_ = false, has_long_computed_ = false;
  std::unique_ptr<shale_sql::RowCodec> rows_;

  shale_sql::Locking locking_;
  shale_sql::Asked asked_;
  Scan scan_;
  std::vector<std::shared_ptr<FoundCells>> found_cells_;  // by estimates of this statement
  shale_sql::Ahead ahead_;
  shale_sql::Ranges ranges_;
  LastRow last_;
  // UPDATE at READ COMMITTED: rows that others have locked are shown as they were committed, and
  // locked only if they match.
  enum class Semi : uint8_t { kNo, kTry, kDid };
  Semi semi_ = Semi::kNo;

  std::string duplicate_primary_;
  // The row of that key, if it has kept another out and is locked; and as of when.
  shale_sql::BytesHandle refused_by_;
  uint64_t refused_in_ = 0, refused_after_ = 0;
  RowKeys was_, is_;
  shale_sql::RowVersions version_;
  shale_sql::RowWrite row_write_;
  std::shared_ptr<const shale_sql::Links> references_;  // of a statement that writes; or none
  uint64_t references_version_ = 0;                       // of all foreign keys, as it has them
  const shale_sql::ForeignKey *following_ = nullptr;  // whose action changes the row
  ParentsAhead parents_ahead_;
  bool is_exported_ = false;  // the file that FLUSH TABLES ... FOR EXPORT has made is there
  bool is_spatial_ = false;  // an index is SPATIAL
  uint64_t noted_write_ = 0;  // one above the count of the transaction that knows of writes here
  std::string value_;
  std::shared_ptr<shale_sql::SharedTable> old_shared_;  // of before TRUNCATE: its lock is held
  Load load_;
  Online online_;
  Shown shown_;
};
