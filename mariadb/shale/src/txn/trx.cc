// One connection's transaction: statements, savepoints, snapshots, two-phase commit.

#include "txn/trx.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "engine/settings.h"
#include "engine/trees.h"
#include "tables/shared_table.h"
#include "txn/in_doubt.h"
#include "txn/prepared.h"
#include "txn/waits.h"

namespace shale_sql {

namespace {

// An error, unless it is that a deadlock has undone the transaction: nothing is left to do then.
Error unless_undone(shale_error *error) {
  ErrorHandle refused(error);
  if (refused && shale_error_kind_of(refused.get()) == SHALE_ROLLED_BACK) return 0;
  return consume_error(refused.release());
}

}  // namespace

bool in_transaction(THD *thd) {
  return thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
}

Trx::Trx(THD *thd)
    : thd_(thd),
      statement_wait_millis_(settings::lock_wait_millis(thd)),
      session_wait_millis_(settings::session_lock_wait_millis(thd)) {
  shale_interrupt *interrupt = nullptr;
  // Without memory for one nothing can be interrupted, and the rest goes on.
  ErrorHandle ignored(shale_interrupt_new(&interrupt));
  interrupt_.reset(interrupt);
}

Trx::~Trx() {
  set_number(0);
  shale_txn_rollback(txn_);
  shale_prepared_free(prepared_);
  end_writes(Changes::End::kKept);
}

Trx *Trx::find(THD *thd) { return static_cast<Trx *>(thd_get_ha_data(thd, engine().hton)); }

Trx *Trx::of(THD *thd) {
  Trx *trx = find(thd);
  if (trx == nullptr) {
    trx = new Trx(thd);
    thd_set_ha_data(thd, engine().hton, trx);
  }
  return trx;
}

void Trx::forget(THD *thd) {
  Trx *trx = find(thd);
  // KILL looks for it under the lock that this takes: before it goes.
  thd_set_ha_data(thd, engine().hton, nullptr);
  delete trx;
}

// Whether another table of the statement has begun it, as one of sixteen partitions mostly has.
bool Trx::has_begun_statement() const {
  const Ha_trx_info *known = thd_->ha_data[engine().hton->slot].ha_info;
  return tables_ != 0 && known[0].is_started() && (!in_transaction(thd_) || known[1].is_started());
}

Error Trx::begin_statement(bool fresh) {
  if (!fresh && has_begun_statement()) {
    // A function or a trigger may have set another timeout.
    return thd_->in_sub_stmt == 0 || txn_ == nullptr ? Error(0) : wait_for_locks(lock_wait());
  }
  leave_detached();
  // One that came after the end of the statement that it was for; but not one that comes now.
  shale_interrupt_set(interrupt_.get(), false);
  if (thd_kill_level(thd_) != THD_IS_NOT_KILLED) shale_interrupt_set(interrupt_.get(), true);
  const unsigned long wait = lock_wait();
  trans_register_ha(thd_, false, engine().hton, 0);
  if (in_transaction(thd_)) trans_register_ha(thd_, true, engine().hton, 0);
  if (txn_ != nullptr) {
    if (Error error = wait_for_locks(wait)) return error;
  }
  if (txn_ != nullptr && read_committed_ && (fresh || tables_ == 0)) {
    return consume_error(shale_txn_begin_statement(txn_));
  }
  return 0;
}

unsigned long Trx::lock_wait() {
  const unsigned long session = settings::session_lock_wait_millis(thd_);
  if (!thd_->in_sub_stmt || session != session_wait_millis_) {
    statement_wait_millis_ = settings::lock_wait_millis(thd_);
    session_wait_millis_ = session;
  }
  return statement_wait_millis_;
}

Error Trx::begin(shale_txn **txn) {
  if (prepared_ != nullptr) {
    return Error(HA_ERR_WRONG_COMMAND, "the transaction is prepared: commit it or roll it back");
  }
  known_parents_.forget();
  read_committed_ = thd_tx_isolation(thd_) <= ISO_READ_COMMITTED;
  int isolation = read_committed_ ? SHALE_READ_COMMITTED : SHALE_REPEATABLE_READ;
  lock_wait_millis_ = lock_wait();
  if (Error error = consume_error(shale_txn_begin(engine().db, isolation, SHALE_LOCKS_LATEST,
                                            lock_wait_millis_, &txn_))) {
    return error;
  }
  set_number(shale_txn_id(txn_));
  if (interrupt_) {
    if (Error error = consume_error(shale_txn_set_interrupt(txn_, interrupt_.get()))) return error;
  }
  if (read_committed_) {
    if (Error error = consume_error(shale_txn_begin_statement(txn_))) return error;
  }
  *txn = txn_;
  return 0;
}

void Trx::set_number(uint64_t number) {
  if (noted_) engine().waits.forget(this->number());
  number_.store(number, std::memory_order_relaxed);
  noted_ = number != 0 && engine().waits.note(number, thd_);
}

Error Trx::before_write(shale_txn **txn, bool lasting) {
  if (Error error = get(txn)) return error;
  wrote_ = true;
  wrote_lasting_ = wrote_lasting_ || lasting;
  return begin_undoable();
}

// A statement that is its own transaction is undone with it.
Error Trx::begin_undoable() {
  if (has_statement_savepoint_ || !in_transaction(thd_)) return 0;
  if (Error error = consume_error(shale_txn_savepoint(txn_, &statement_savepoint_))) return error;
  has_statement_savepoint_ = true;
  return 0;
}

void Trx::unlock(const shale_tree *tree, const std::string &key) {
  if (txn_ == nullptr || !read_committed_) return;
  // Whatever is in the way of it, the lock then stays.
  ErrorHandle ignored(shale_txn_unlock(txn_, tree, key.data(), key.size(), nullptr));
}

Error Trx::take_snapshot() {
  leave_detached();
  shale_txn *txn = nullptr;
  if (Error error = get(&txn)) return error;
  if (!has_snapshot_) snapshot_epoch_ = SharedTable::tree_epoch();
  has_snapshot_ = true;
  return consume_error(shale_txn_begin_statement(txn));
}

Error Trx::wait_for_locks(unsigned long millis) {
  if (millis == lock_wait_millis_) return 0;
  lock_wait_millis_ = millis;
  return consume_error(shale_txn_set_lock_timeout(txn_, millis));
}

// A connection that is reset, or changes its user, leaves a prepared XA transaction to whoever
// decides it, and the server tells no engine.
void Trx::leave_detached() {
  if (prepared_name_.empty() || (in_xa() && !is_of_another())) return;
  detach();
  (void)rollback();
}

bool Trx::in_xa() const { return thd_->transaction->xid_state.is_explicit_XA(); }

// Whether what is prepared has another name than the XA transaction that the connection has now.
bool Trx::is_of_another() const {
  return !prepared_name_.empty() && in_xa() && bytes_of_xid(*thd_->get_xid()) != prepared_name_;
}

Error Trx::commit_part(bool loads) {
  shale_txn *txn = txn_;
  txn_ = nullptr;
  set_number(0);
  has_statement_savepoint_ = false;
  has_snapshot_ = false;
  if (txn == nullptr) return 0;
  // Scans that lock are of one transaction: they go on in the next one.
  ended_++;
  if (loads) return load_.commit(txn);
  return consume_error(shale_txn_commit(txn, false));
}

Error Trx::see(const SharedTable &table) {
  // Each statement sees what is committed when it begins, and the table does not change meanwhile.
  if (read_committed_) return 0;
  if (!has_snapshot_) {
    has_snapshot_ = true;
    snapshot_epoch_ = SharedTable::tree_epoch();
  }
  if (table.trees_epoch <= snapshot_epoch_) return 0;
  return Error(HA_ERR_TABLE_DEF_CHANGED, "table " + table.path +
                                              " was made anew after this transaction's snapshot");
}

Error Trx::commit_statement() {
  aside_.clear();
  version_ids_.end_statement();
  if (has_statement_savepoint_ && txn_ != nullptr) {
    return consume_error(end_undoable());
  }
  return 0;
}

// With it go the savepoints that functions of the statement have left.
shale_error *Trx::end_undoable() {
  has_statement_savepoint_ = false;
  savepoints_ = std::min(savepoints_, statement_savepoint_);
  version_ids_.release(statement_savepoint_);
  return shale_txn_release(txn_, statement_savepoint_);
}

Error Trx::rollback_statement() {
  aside_.clear();
  version_ids_.end_statement();
  if (has_statement_savepoint_ && txn_ != nullptr) {
    undid_part_ = true;
    known_parents_.forget();
    Error error = unless_undone(shale_txn_rollback_to(txn_, statement_savepoint_));
    Error released = unless_undone(end_undoable());
    return error ? std::move(error) : std::move(released);
  }
  return 0;
}

Error Trx::keep_numbers() {
  for (const auto &table : numbered_) {
    if (Error error = table->keep_number()) return error;
  }
  while (!numbered_.empty()) {
    std::shared_ptr<SharedTable> table = std::move(numbered_.extract(numbered_.begin()).value());
    // Whoever lets go of a table last keeps its number exactly: it may have been closed meanwhile.
    if (table.use_count() <= 2) SharedTable::close(&table);
  }
  return 0;
}

bool Trx::syncs_commits() const { return settings::sync_at_commit() || !copies_.empty(); }

// Whether the commit of the engine's transaction waits until the log is synced. Without writes of
// its own there is something to wait for if it has values of a sequence.
bool Trx::must_sync() const {
  return !copies_.empty() ||
         ((wrote_lasting_ || (asked_sequence_ && engine().unsynced.any())) && syncs_commits());
}

// As a commit, where there is nothing to commit.
Error Trx::make_durable() {
  if (!copies_.empty()) return consume_error(shale_sync(engine().db));
  if (Error error = load_.make_durable()) return error;
  return sync_sequences();
}

Error Trx::sync_sequences() {
  if (!asked_sequence_ || !settings::sync_at_commit()) return 0;
  return engine().unsynced.sync(engine().db);
}

Error Trx::prepare(const std::string &xid) {
  if (Error error = keep_numbers()) return error;
  if (txn_ == nullptr) return make_durable();
  shale_txn *txn = txn_;
  txn_ = nullptr;
  has_statement_savepoint_ = false;
  prepared_name_ = xid;
  return consume_error(
      shale_txn_prepare(txn, xid.data(), xid.size(), syncs_commits(), &prepared_));
}

Error Trx::prepare_reads(const std::string &xid) {
  prepared_name_ = xid;
  return sync_sequences();
}

Error Trx::release_reads() {
  return prepared_ == nullptr ? Error(0) : consume_error(shale_prepared_release_reads(prepared_));
}

void Trx::commit_ordered() {
  if (prepared_ == nullptr) return;
  commit_error_ = decide_prepared(false);
  committed_ = true;
}

// Commits what is prepared, now or later.
Error Trx::decide_prepared(bool sync) {
  Error error = engine().in_doubt.decide(prepared_, true, sync);
  prepared_ = nullptr;
  if (!error) return error;
  return Error(error.number(), error.text() + "; the transaction is committed later, as soon as "
                                              "that is possible");
}

Error Trx::commit() {
  Error error = 0;
  if (is_of_another()) detach();
  if (committed_) {
    error = std::move(commit_error_);
  } else if (prepared_ != nullptr) {
    error = decide_prepared(syncs_commits());
  } else if (txn_ != nullptr) {
    shale_txn *txn = txn_;
    txn_ = nullptr;
    error = keep_numbers();
    if (error) {
      shale_txn_rollback(txn);
    } else {
      error = consume_error(shale_txn_commit(txn, must_sync()));
    }
  } else {
    error = keep_numbers();
    if (!error) error = make_durable();
  }
  if (!error) end_copies();
  // Who knows which rows are there?
  if (error) undid_part_ = true;
  end();
  return error;
}

Error Trx::rollback() {
  Error error = 0;
  if (is_of_another()) detach();
  if (prepared_ != nullptr) {
    error = engine().in_doubt.decide(prepared_, false, false);
    prepared_ = nullptr;
  }
  shale_txn_rollback(txn_);
  txn_ = nullptr;
  // Numbers that were given out are not given again, though nothing came of it.
  Error kept = keep_numbers();
  end_writes(Changes::End::kUndone);
  end();
  return error ? std::move(error) : std::move(kept);
}

void Trx::detach() {
  shale_prepared_free(prepared_);
  prepared_ = nullptr;
}

void Trx::end_copies() {
  for (const auto &table : copies_) {
    SharedTable::note_new_trees(table->path);
    table->trees_epoch = SharedTable::tree_epoch();
  }
}

void Trx::end() {
  prepared_name_.clear();
  copies_.clear();
  set_number(0);
  has_snapshot_ = false;
  ended_++;
  if (!actions_.empty()) actions_.clear();
  kept_past_.forget_all();
  version_ids_.end_transaction(thd_);
  wrote_ = wrote_lasting_ = rewrote_ = may_have_locks_ = asked_sequence_ = false;
  has_statement_savepoint_ = false;
  savepoints_ = 0;
  committed_ = false;
  commit_error_ = Error();
  numbered_.clear();
  load_.end();
  end_writes(undid_part_ ? Changes::End::kPartlyKept : Changes::End::kKept);
  undid_part_ = false;
  held_.clear();
  aside_.clear();
}

void Trx::end_writes(Changes::End how) {
  for (const auto &[table, rows] : writes_) table->end(rows, how);
  writes_.clear();
}

void Trx::forget_tree(const std::string &name) {
  if (txn_ == nullptr) return;
  TreeHandle tree;
  Error error = open_tree(engine().db, name, &tree);
  if (!error) {
    error = unless_undone(shale_txn_forget(txn_, tree.get()));
    if (!error) return;
  }
  // The commit would fail, and say so.
  if (error) log_error("tree " + name + " of a temporary table: " + error.text());
}

void Trx::forget_table(uint64_t table_id) {
  for (auto table = numbered_.begin(); table != numbered_.end();) {
    table = (*table)->def->table_id == table_id ? numbered_.erase(table) : std::next(table);
  }
}

Error Trx::savepoint(size_t *place) {
  shale_txn *txn = nullptr;
  if (Error error = get(&txn)) return error;
  // One of a function or trigger is of a part of the statement, which may be undone as a whole.
  if (thd_->in_sub_stmt != 0) {
    if (Error error = begin_undoable()) return error;
  }
  if (Error error = consume_error(shale_txn_savepoint(txn, place))) return error;
  savepoints_ = *place + 1;
  return 0;
}

Error Trx::release(size_t place, bool later) {
  if (txn_ == nullptr || (!later && place + 1 != savepoints_)) return 0;
  savepoints_ = place;
  version_ids_.release(place);
  return unless_undone(shale_txn_release(txn_, place));
}

Error Trx::rollback_to(size_t place) {
  version_ids_.rollback_to(place);
  if (txn_ == nullptr) return 0;
  savepoints_ = place + 1;
  if (statement_savepoint_ >= place) has_statement_savepoint_ = false;
  undid_part_ = true;
  known_parents_.forget();
  return consume_error(shale_txn_rollback_to(txn_, place));
}

}  // namespace shale_sql
