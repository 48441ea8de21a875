// Opening and closing a handler; what it can; which locks its statement asks for.

#include "handler/ha_shale.h"

#include "codec/index_defs.h"
#include "ddl/ddl_recovery.h"
#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "txn/in_doubt.h"
#include "txn/trx.h"
#include "words/word_codec.h"

using namespace shale_sql;

namespace {

bool works_without_rows(THD *thd) {
  return thd_tablespace_op(thd) || thd_sql_command(thd) == SQLCOM_TRUNCATE;
}

// Of each column, whether an entry of an index has only the beginning of it.
std::vector<uint64_t> beginnings_in(const TABLE *table, const KeyCodec &codec) {
  std::vector<uint64_t> columns((table->s->fields + 63) / 64);
  for (Field **field = table->field; *field != nullptr; field++) {
    uint number = (*field)->field_index;
    bool begins = codec.begins(number) && !codec.gives(number);
    if (begins) columns[number / 64] |= uint64_t{1} << number % 64;
  }
  return columns;
}

// Whether an index is of columns with these flags that are in no row.
bool has_computed(const TABLE *table, uint number, uint flags) {
  if (number == MAX_KEY) return false;
  const KEY &key = table->key_info[number];
  for (uint part = 0; part < key.user_defined_key_parts; part++) {
    const Field *field = table->field[key.key_part[part].fieldnr - 1];
    if (!field->stored_in_db() && (field->flags & flags) == flags) return true;
  }
  return false;
}

}  // namespace

bool shale_sql::alters_table(THD *thd) {
  int command = thd_sql_command(thd);
  return command == SQLCOM_ALTER_TABLE || command == SQLCOM_CREATE_INDEX ||
         command == SQLCOM_DROP_INDEX;
}

ha_shale::ha_shale(handlerton *hton, TABLE_SHARE *share) : handler(hton, share) {
  ref_length = 8;
}

handler::Table_flags ha_shale::table_flags() const {
  Table_flags flags =
      HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS | HA_CAN_SQL_HANDLER | HA_PRIMARY_KEY_IN_READ_INDEX |
      HA_PRIMARY_KEY_REQUIRED_FOR_POSITION | HA_REQUIRES_KEY_COLUMNS_FOR_DELETE |
      HA_DUPLICATE_POS | HA_CAN_VIRTUAL_COLUMNS | HA_CAN_GEOMETRY | HA_PARTIAL_COLUMN_READ |
      HA_CAN_FULLTEXT | HA_CAN_FULLTEXT_EXT | HA_CAN_RTREEKEYS |
      HA_BINLOG_ROW_CAPABLE | HA_CAN_SKIP_LOCKED | HA_CRASH_SAFE | HA_CONCURRENT_OPTIMIZE |
      HA_ONLINE_ANALYZE | HA_REUSES_FILE_NAMES | HA_TABLE_SCAN_ON_INDEX | HA_CAN_EXPORT |
      // The row of a sequence is written outside of the transaction.
      HA_CAN_TABLES_WITHOUT_ROLLBACK |
      // BACKUP STAGE then holds up commits and DDL only. Were writes to wait for it, they would
      // with their row locks, for which others wait whose end the backup awaits.
      HA_CAN_ONLINE_BACKUPS;
  // Without HA_CAN_HASH_KEYS the server makes the hash of UNIQUE ... USING HASH, as for InnoDB:
  // such a key needs none of the columns by which a table is partitioned.
  // As InnoDB: a statement that is logged as text gives the same again only if its reads locked.
  THD *thd = ha_thd();
  if (thd == nullptr || thd_tx_isolation(thd) > ISO_READ_COMMITTED) {
    flags |= HA_BINLOG_STMT_CAPABLE;
  }
  return flags;
}

const char *ha_shale::index_type(uint index) {
  const ulong flags = table_share->key_info[index].flags;
  if ((flags & HA_FULLTEXT) != 0) return "FULLTEXT";
  return (flags & HA_SPATIAL) != 0 ? "SPATIAL" : "BTREE";
}

ulong ha_shale::index_flags(uint index, uint part, bool) const {
  // Rows are found in it by ft_init_ext alone.
  if ((table_share->key_info[index].flags & HA_FULLTEXT) != 0) return 0;
  // It is searched by rectangles only. Its order is that of no column, though SHOW INDEX says so of
  // InnoDB's.
  if ((table_share->key_info[index].flags & HA_SPATIAL) != 0) {
    return HA_READ_NEXT | HA_READ_ORDER | HA_READ_RANGE | HA_KEY_SCAN_NOT_ROR;
  }
  ulong flags = HA_READ_NEXT | HA_READ_PREV | HA_READ_ORDER | HA_READ_RANGE;
  // Before a handler is open only the definition tells: parts of a part of a column do not cover
  // it. While the server reads the definition, it has no number of the primary key yet: what can be
  // read from an index alone must not depend on that.
  const KEY &key = table_share->key_info[index];
  if (part < key.ext_key_parts && (key.key_part[part].key_part_flag & HA_PART_KEY_SEG) == 0) {
    flags |= HA_KEYREAD_ONLY;
  }
  bool is_primary = index == table_share->primary_key;
  return flags | (is_primary ? HA_CLUSTERED_INDEX
                             : HA_DO_INDEX_COND_PUSHDOWN | HA_DO_RANGE_FILTER_PUSHDOWN);
}

// The server takes each index for one that has the columns of the primary key in their order, since
// it does so of BTREE indexes. InnoDB, which says nothing, answers no rows where one of FULLTEXT is
// scanned for that order.
static void leave_to_match(TABLE *table) {
  for (uint number = 0; number < table->s->keys; number++) {
    if ((table->key_info[number].flags & HA_FULLTEXT) == 0) continue;
    for (Field **field = table->field; *field != nullptr; field++) {
      (*field)->part_of_key.clear_bit(number);
      (*field)->part_of_key_not_clustered.clear_bit(number);
      (*field)->part_of_sortkey.clear_bit(number);
    }
  }
}

int ha_shale::open(const char *name, int, uint) {
  if (int error = note(SharedTable::open(name, table, &shared_))) return error;
  if (int error = open_indexes()) {
    shared_.reset();
    return error;
  }
  leave_to_match(table);
  ref_length = position_bytes();
  // What changes the primary key finds its rows first, and only then changes them.
  key_used_on_scan = table->s->primary_key;
  // Its .frm file is there again.
  if (is_lost(name)) {
    if (int error = note(note_not_lost(name))) return error;
  }
  return info(HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_OPEN);
}

int ha_shale::open_indexes() {
  const TableDef &def = *shared_->def;
  indexes_.clear();
  has_many_ = is_spatial_ = false;
  online_ = Online();
  places_.assign(table->s->keys, 0);
  if (int error = note(compare_definitions(shared_->path, table, def))) return error;
  std::vector<unsigned> numbers(def.indexes.size(), MAX_KEY);
  auto add = [&](uint number, size_t tree) {
    numbers[tree] = number;
    Index index;
    index.number = number;
    index.tree = shared_->trees[tree].get();
    index.unique = number == MAX_KEY || (table->key_info[number].flags & HA_NOSAME) != 0;
    const KeyCodec *first = indexes_.empty() ? nullptr : indexes_[0].codec.get();
    if (has_many_entries(table, number)) {
      index.many = std::make_unique<WordCodec>(table, table->key_info[number],
                                               def.indexes[tree].words);
      has_many_ = true;
    } else {
      index.codec = std::make_unique<KeyCodec>(table, number, first);
      index.beginnings = beginnings_in(table, *index.codec);
    }
    index.computed = has_computed(table, number, 0);
    has_computed_ = has_computed_ || index.computed;
    has_long_computed_ = has_long_computed_ || has_computed(table, number, BLOB_FLAG);
    is_spatial_ = is_spatial_ || index.is_spatial();
    if (number != MAX_KEY) places_[number] = indexes_.size();
    indexes_.push_back(std::move(index));
  };
  add(table->s->primary_key, 0);
  for (uint number = 0; number < table->s->keys; number++) {
    if (number == table->s->primary_key) continue;
    add(number, static_cast<size_t>(index_of(def, table, number) - def.indexes.data()));
  }
  shared_->learn_key_words(table, numbers);
  rows_ = std::make_unique<RowCodec>(table, indexes_[0].codec.get(), shared_->def);
  return 0;
}

int ha_shale::close() {
  end_scan();
  scan_.cursor.forget();
  rows_.reset();
  indexes_.clear();
  if (shared_) SharedTable::close(&shared_);
  return 0;
}

// Of the table that is open here, whatever the server calls it: of a statement that names some
// partitions it may be the name of another one that it gives.
handler *ha_shale::clone(const char *, MEM_ROOT *mem_root) {
  auto *copy = static_cast<ha_shale *>(handler::clone(shared_->path.c_str(), mem_root));
  if (copy != nullptr) {
    copy->locking_.mode = locking_.mode;
    copy->locking_.of_table = locking_.of_table;
    copy->asked_.skips_locked = asked_.skips_locked;
    copy->asked_.whole_rows = asked_.whole_rows;
  }
  return copy;
}

Trx *ha_shale::trx() { return Trx::of(ha_thd()); }

// HANDLER ... READ is a plain read, also at SERIALIZABLE, as InnoDB has it. It shows what its
// transaction has written since the one before.
void ha_shale::init_table_handle_for_HANDLER() {
  locking_.mode = locking_.of_table = SHALE_LOCK_NONE;
  asked_.skips_locked = false;
  scan_.is_of_before = true;
}

// Which reads lock, by the rules that users know of InnoDB: all but those of plain SELECTs; at READ
// COMMITTED not those that INSERT ... SELECT and the like do beside.
THR_LOCK_DATA **ha_shale::store_lock(THD *thd, THR_LOCK_DATA **to, enum thr_lock_type type) {
  int command = thd_sql_command(thd);
  bool in_lock_tables = thd_in_lock_tables(thd);
  if (type != TL_IGNORE) {
    asked_.skips_locked = type == TL_READ_SKIP_LOCKED || type == TL_WRITE_SKIP_LOCKED;
    bool read_committed = thd_tx_isolation(thd) <= ISO_READ_COMMITTED;
    bool locks = (in_lock_tables && (type == TL_READ || type == TL_READ_HIGH_PRIORITY)) ||
                 type == TL_READ_WITH_SHARED_LOCKS || type == TL_READ_SKIP_LOCKED ||
                 type == TL_READ_NO_INSERT || command != SQLCOM_SELECT;
    bool beside = command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT ||
                  command == SQLCOM_UPDATE || command == SQLCOM_CREATE_TABLE;
    // Nobody writes to a table that is copied, which its metadata lock sees to.
    bool altered = alters_table(thd);
    bool in_parts = (command == SQLCOM_INSERT_SELECT || command == SQLCOM_REPLACE_SELECT) &&
                    settings::bulk_load(thd) && !in_transaction(thd);
    // CHECK reads rows like this to see whether they are in the right partition.
    bool consistent = command == SQLCOM_CHECKSUM || command == SQLCOM_CHECK ||
                      command == SQLCOM_HA_OPEN || command == SQLCOM_HA_READ ||
                      command == SQLCOM_CREATE_SEQUENCE ||
                      ((altered || in_parts) && type <= TL_READ_NO_INSERT) ||
                      (command == SQLCOM_ANALYZE && type == TL_READ) ||
                      (read_committed && (type == TL_READ || type == TL_READ_NO_INSERT) && beside);
    locking_.mode = locks && !consistent ? SHALE_LOCK_SHARED : SHALE_LOCK_NONE;
    locking_.of_table = locking_.mode;
  }
  return to;
}

int ha_shale::external_lock(THD *thd, int type) {
  Trx *trx = Trx::of(thd);
  if (type == F_UNLCK) {
    locking_.by_server = false;
    asked_.whole_rows = false;
    if (scan_.index == nullptr) scan_.cursor.forget();
    trx->end_table();
    if (is_exported_) end_export();
    return 0;
  }
  if (int error = open_anew_if_replaced()) return error;
  if (shared_->def->discarded && !works_without_rows(thd)) return tell_discarded();
  if (thd->lex->sql_command == SQLCOM_FLUSH) {
    if (int error = export_rows(thd)) return tell_server(thd, error);
  }
  if (type == F_WRLCK) {
    locking_.mode = locking_.of_table = SHALE_LOCK_EXCLUSIVE;
    asked_.whole_rows = true;
    if (is_sequence() && !shared_->def->temporary) trx->note_sequence();
  }
  if (int error = note(trx->begin_statement(false))) return tell_server(thd, error);
  // Those who write late are away from what is read without locks.
  if (alters_table(thd)) {
    if (int error = note(engine().in_doubt.finish_commits())) return tell_server(thd, error);
    // Those that are prepared and have lost their connections have no metadata lock either: a copy
    // of the table waits for their rows, which it would miss.
    if (locking_.mode == SHALE_LOCK_NONE && !shared_->def->temporary) {
      bool locked = false;
      if (Error error = consume_error(shale_tree_is_locked(indexes_[0].tree, &locked))) {
        return tell_server(thd, note(std::move(error)));
      }
      if (locked) locking_.mode = locking_.of_table = SHALE_LOCK_SHARED;
    }
  }
  // What is copied nobody writes.
  if (locking_.mode == SHALE_LOCK_NONE && in_transaction(thd) && !alters_table(thd) &&
      thd_tx_isolation(thd) == ISO_SERIALIZABLE) {
    locking_.mode = locking_.of_table = SHALE_LOCK_SHARED;
  }
  // Partitions are told of it by nobody else.
  if (thd_sql_command(thd) == SQLCOM_HA_READ) init_table_handle_for_HANDLER();
  if (locking_.mode != SHALE_LOCK_NONE) trx->note_locks();
  trx->use_table();
  locking_.by_server = true;
  return 0;
}

// Under LOCK TABLES another handler of the session, by an alias, has given the table new trees.
int ha_shale::open_anew_if_replaced() {
  if (!shared_->is_forgotten()) return 0;
  std::shared_ptr<SharedTable> fresh;
  if (int error = note(SharedTable::open(shared_->path, table, &fresh))) return error;
  end_scan();
  scan_.cursor.forget();
  scan_.index = nullptr;
  last_.locked_row.index = last_.locked_entry.index = nullptr;
  noted_write_ = 0;
  SharedTable::close(&shared_);
  shared_ = std::move(fresh);
  return open_indexes();
}

int ha_shale::start_stmt(THD *thd, thr_lock_type type) {
  if (int error = open_anew_if_replaced()) return error;
  if (shared_->def->discarded && !works_without_rows(thd)) return tell_discarded();
  if (!locking_.by_server) {
    // A temporary table, made within this LOCK TABLES.
    locking_.mode = SHALE_LOCK_EXCLUSIVE;
    asked_.whole_rows = true;
  } else if (thd_sql_command(thd) == SQLCOM_SELECT && type == TL_READ &&
             thd_tx_isolation(thd) != ISO_SERIALIZABLE) {
    locking_.mode = SHALE_LOCK_NONE;
  } else {
    locking_.mode = locking_.of_table;
  }
  if (type >= TL_WRITE_ALLOW_WRITE) asked_.whole_rows = true;
  Trx *trx = Trx::of(thd);
  if (locking_.mode != SHALE_LOCK_NONE) trx->note_locks();
  return tell_server(thd, note(trx->begin_statement(!thd->in_sub_stmt)));
}

int ha_shale::reset() {
  end_scan();
  scan_.cursor.forget();
  found_cells_.clear();
  scan_.index = nullptr;
  asked_.keys_only = asked_.checks_period = false;
  noted_write_ = 0;
  refused_by_.reset();
  asked_.has_range_end = asked_.has_range_start = false;
  forget_locked();
  semi_ = Semi::kNo;
  load_ = Load();
  parents_ahead_.begin(0);
  online_.indexes.reset();
  // A statement with long values does not keep their memory for all that follow.
  if (last_.value.capacity() > (1 << 20)) std::string().swap(last_.value);
  return 0;
}

int ha_shale::extra(enum ha_extra_function operation) {
  switch (operation) {
    case HA_EXTRA_KEYREAD:
      asked_.keys_only = true;
      break;
    case HA_EXTRA_NO_KEYREAD:
      asked_.keys_only = false;
      break;
    case HA_EXTRA_BEGIN_COPY:
      begin_copy(false);
      break;
    case HA_EXTRA_BEGIN_ALTER_IGNORE_COPY:
      begin_copy(true);
      break;
    case HA_EXTRA_END_COPY:
      return tell_server(ha_thd(), end_copy());
    case HA_EXTRA_ABORT_COPY:
      load_ = Load();
      break;
    default:
      break;
  }
  return 0;
}
