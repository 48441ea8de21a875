// The transaction of one connection.
#pragma once

#include "engine/errors.h"
#include "engine/handles.h"
#include "tables/query_cache.h"
#include "txn/kept_past.h"
#include "txn/known_parents.h"
#include "txn/load_in_parts.h"
#include "txn/version_ids.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

class THD;
struct xid_t;

namespace shale_sql {

class SharedTable;

class Trx {
 public:
  // That of a connection, made with the first use.
  static Trx *of(THD *thd);
  // That of a connection if it has one.
  static Trx *find(THD *thd);
  static void forget(THD *thd);

  explicit Trx(THD *thd);
  ~Trx();

  // A statement begins to use a table: tells the server that SHALE takes part, and at READ
  // COMMITTED makes the statement see what is committed now. `fresh`: surely a new one, as within
  // LOCK TABLES.
  Error begin_statement(bool fresh);
  // A statement has let go of a table.
  void end_table() {
    if (tables_ > 0) tables_--;
  }
  void use_table() { tables_++; }
  // Long keys that positions of rows stand for, by sums of them, until the statement ends.
  void keep_aside(std::string_view sum, std::string_view key) {
    aside_.try_emplace(std::string(sum), key);
  }
  std::string_view kept_aside(std::string_view sum) const {
    const auto found = aside_.find(std::string(sum));
    return found == aside_.end() ? std::string_view() : std::string_view(found->second);
  }

  // The engine's transaction, begun if it has not.
  Error get(shale_txn **txn) {
    *txn = txn_;
    return txn_ != nullptr ? 0 : begin(txn);
  }
  // Before the first write of a statement: a place to go back to.
  // `lasting`: of a table that outlives the server.
  Error before_write(shale_txn **txn, bool lasting);
  // Reads from now on see what is committed now.
  Error take_snapshot();
  // For how long the calls from now on wait for a lock.
  Error wait_for_locks(unsigned long millis);
  // How long the statement waits for a lock.
  unsigned long lock_wait();
  // Another thread ends the statement: what waits for a lock stops waiting.
  void interrupt() { shale_interrupt_set(interrupt_.get(), true); }
  bool begun() const { return txn_ != nullptr; }
  // The engine's number of the transaction, 0 without one; for any thread.
  uint64_t number() const { return number_.load(std::memory_order_relaxed); }
  // At READ COMMITTED: gives up the lock of a key if no other statement, and no write, relies on
  // it.
  void unlock(const shale_tree *tree, const std::string &key);
  // Counts the transactions that have ended: what was begun under another count is not of this one.
  uint64_t ended() const { return ended_; }
  bool read_committed() const { return read_committed_; }
  bool wrote() const { return wrote_; }
  // A statement that locks what it reads or writes, whether it has found anything.
  void note_locks() { may_have_locks_ = true; }
  bool may_have_locks() const { return may_have_locks_; }
  // A row was written that others have changed since the snapshot (ha_rewrite.cc).
  void note_rewritten() { rewrote_ = true; }
  bool rewrote() const { return rewrote_; }

  // The error of this connection that was met last and has a text: the server knows its number
  // only, and asks any handler of the statement for its words.
  void note_error(Error error) { last_error_ = std::move(error); }
  const Error &last_error() const { return last_error_; }

  // The index in which a write last found a duplicate. The server may ask the handler of another
  // partition for it than the one that found it.
  void note_duplicate(unsigned index) { duplicate_ = index; }
  unsigned duplicate() const { return duplicate_; }

  // How many rows of a table actions of foreign keys have changed in this transaction: who scans
  // it, or is about to write a row that it has read, then looks again.
  uint64_t actions_on(const SharedTable *table) const {
    if (actions_.empty()) return 0;
    const auto found = actions_.find(table);
    return found == actions_.end() ? 0 : found->second;
  }
  void note_action_on(const SharedTable *table) { actions_[table]++; }

  KeptPast &kept_past() { return kept_past_; }
  // Its id in rows that keep versions by it.
  Error version_id(uint64_t *id) { return version_ids_.get(thd_, savepoints_, id); }
  Error end_version(ulonglong *begin, ulonglong *end) {
    return version_ids_.end_id(thd_, begin, end);
  }
  // Parents that need not be looked up again.
  KnownParents &known_parents() { return known_parents_; }

  // The levels of actions of foreign keys that run now, and the tables whose rows they update.
  size_t levels() const { return levels_.size(); }
  void begin_level(std::string updating) { levels_.push_back(std::move(updating)); }
  void end_level() { levels_.pop_back(); }
  bool is_updating(const std::string &path) const {
    return std::find(levels_.begin(), levels_.end(), path) != levels_.end();
  }
  // The unique index of a child in which an action found a duplicate.
  void note_duplicate_of_child(const char *table, const char *key) {
    duplicate_child_ = table;
    duplicate_key_ = key;
  }
  const std::string &duplicate_child() const { return duplicate_child_; }
  const std::string &duplicate_key() const { return duplicate_key_; }
  // A table is about to be written; said once of each statement.
  void note_writer(const std::shared_ptr<Changes> &table) {
    if (writes_.try_emplace(table, 0).second) table->begin();
  }
  // It has written a row there: a new one, or -1 for one that went.
  void note_rows(const std::shared_ptr<Changes> &table, int rows) {
    if (rows == 0) return;
    const auto found = writes_.find(table);
    if (found == writes_.end()) return;
    found->second += rows;
    table->wrote(rows);
  }
  // What stays to the end of the transaction, since it has written there.
  void hold(std::shared_ptr<const void> written) { held_.insert(std::move(written)); }
  // Of a temporary table that goes: what was written to a tree of it, and its automatic number.
  void forget_tree(const std::string &name);
  void forget_table(uint64_t table_id);

  // The statement may ask a sequence for values.
  void note_sequence() { asked_sequence_ = true; }
  void note_number(const std::shared_ptr<SharedTable> &table) { numbered_.insert(table); }

  // What was written so far is committed, though the statement goes on. `loads`: into a table that
  // others see.
  Error commit_part(bool loads);
  // The transaction copies rows into a table that others do not see yet, in parts. What its commit
  // leaves is durable, since the server goes on as if it were, and is not seen by those who began
  // before it, who would see some of the parts.
  void note_copy(const std::shared_ptr<SharedTable> &table) { copies_.push_back(table); }
  // Before a plain read of a table: 0, or an error if the snapshot is older than its trees.
  Error see(const SharedTable &table);

  // Makes values durable that sequences have given to this transaction.
  Error sync_sequences();
  Error commit_statement();
  Error rollback_statement();
  Error prepare(const std::string &xid);
  // The same of a transaction that has written nothing which outlives the server: it keeps what it
  // has until it is decided, or the connection has left it.
  Error prepare_reads(const std::string &xid);
  // Of what is prepared: of rows that it has read, and of gaps. Its own writes stay locked.
  Error release_reads();
  // Makes a prepared transaction visible, without a sync; an error is kept for `commit`.
  void commit_ordered();
  Error commit();
  Error rollback();
  // The connection ends: what is prepared stays so.
  void detach();

  Error savepoint(size_t *place);
  Error rollback_to(size_t place);
  // Gives up a savepoint; `later`: and all that follow it, else only if it is the last.
  Error release(size_t place, bool later);

 private:
  Error begin(shale_txn **txn);
  void leave_detached();
  bool in_xa() const;
  bool has_begun_statement() const;
  bool is_of_another() const;
  Error begin_undoable();
  shale_error *end_undoable();
  Error decide_prepared(bool sync);
  Error keep_numbers();
  bool syncs_commits() const;
  bool must_sync() const;
  Error make_durable();
  void set_number(uint64_t number);
  void end_writes(Changes::End how);
  void end();
  void end_copies();

  THD *thd_;
  shale_txn *txn_ = nullptr;
  std::atomic<uint64_t> number_{0};
  unsigned long lock_wait_millis_ = 0;
  // For locks, also in the functions that a statement calls, unless these set the variable; what
  // it was then.
  unsigned long statement_wait_millis_, session_wait_millis_;
  InterruptHandle interrupt_;
  shale_prepared *prepared_ = nullptr;
  std::string prepared_name_;  // also of one that has nothing to be prepared
  bool noted_ = false;  // the server may be told who waits for it
  bool read_committed_ = false;
  bool wrote_ = false;
  bool wrote_lasting_ = false;
  bool rewrote_ = false;
  bool may_have_locks_ = false;
  bool asked_sequence_ = false;
  uint64_t ended_ = 0;
  unsigned tables_ = 0;
  std::unordered_map<std::string, std::string> aside_;
  bool has_snapshot_ = false;
  uint64_t snapshot_epoch_ = 0;  // SharedTable::tree_epoch when it was taken
  bool has_statement_savepoint_ = false;
  size_t statement_savepoint_ = 0;
  size_t savepoints_ = 0;  // of the user
  Error last_error_;
  bool committed_ = false;
  // A statement was undone, or all since a savepoint.
  bool undid_part_ = false;
  Error commit_error_;
  std::set<std::shared_ptr<SharedTable>> numbered_;
  unsigned duplicate_ = ~0u;
  std::map<const SharedTable *, uint64_t> actions_;
  KeptPast kept_past_;
  VersionIds version_ids_;
  KnownParents known_parents_;
  std::vector<std::string> levels_;
  std::string duplicate_child_, duplicate_key_;
  // Of the tables that it has written, and how many rows it has added.
  std::map<std::shared_ptr<Changes>, int64_t> writes_;
  std::set<std::shared_ptr<const void>> held_;
  std::vector<std::shared_ptr<SharedTable>> copies_;
  LoadInParts load_;
};

// Of the plugin's place in a connection's memory.
bool in_transaction(THD *thd);

}  // namespace shale_sql
