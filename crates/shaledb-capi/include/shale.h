/*
 * Shale: an embedded log-structured merge tree.
 *
 * Conventions
 *  1. A call that can fail returns an error object, or NULL if it did what it says. The caller frees
 *     it with shale_error_free. What a failed call was to store through a pointer is left as it was,
 *     unless the call says otherwise.
 *  2. What a function named ..._new, ..._open or ..._create makes belongs to the caller, who ends it
 *     by the function named ..._free (a database: shale_close), once, when no other call with it is
 *     under way. NULL may be freed.
 *     A transaction is ended by shale_txn_commit, shale_txn_rollback or shale_txn_prepare.
 *  3. Keys and values are bytes with a length, and may hold zeros; a pointer may be NULL if its length
 *     is 0. A length that no key (64 KiB) or no value (4 GiB) has is refused before anything is read.
 *     Names, paths and settings are UTF-8 that ends with a zero. They are read during the call
 *     and not kept.
 *  4. Databases, trees and snapshots may be used by many threads at once. Batches, scans, readers,
 *     bulk loads and configurations: by one at a time.
 *  5. Other handles of a database may be in use while it is closed, and be freed before or after;
 *     once it is closed, calls with them that read or write it return SHALE_CLOSED. The handle of
 *     the database itself goes with shale_close: then no other thread may be in a call with it.
 *  6. NULL where a handle is asked for is SHALE_INVALID_ARGUMENT. No call throws, longjmps or
 *     aborts: a defect of the library is returned as SHALE_PANIC. Nor may a function that the
 *     library calls: no C++ exception and no longjmp may leave it.
 *  7. After fork() the child may read what its parent has open, but not write: SHALE_FORKED. Of a
 *     file that a thread of the parent opens at that very moment it may lack the handle: SHALE_IO.
 *  8. The order of settings, kinds of errors and functions is stable; new ones are added at the end.
 */


#ifndef SHALE_H
#define SHALE_H

// Made by cbindgen from crates/shaledb-capi/src; changes here are lost.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__GNUC__)
#define SHALE_MUST_USE __attribute__((warn_unused_result))
#else
#define SHALE_MUST_USE
#endif


// What went wrong, by what a caller can do about it.
typedef enum {
  // Nothing: there is no error.
  SHALE_OK = 0,
  // The operating system refused an operation on a file; the text names both.
  SHALE_IO = 1,
  // No space on the device: the write has had no effect. Reads go on, and writes succeed again
  // by themselves once there is space.
  SHALE_DISK_FULL = 2,
  // Bytes on disk are not what was written; the text names file and offset.
  SHALE_CORRUPTION = 3,
  // A setting is unknown, out of range, or contradicts another.
  SHALE_CONFIG = 4,
  // An argument is out of its bounds.
  SHALE_INVALID_ARGUMENT = 5,
  // The database is in use by another process or another handle.
  SHALE_LOCKED = 6,
  // There is no such tree, or it has been dropped.
  SHALE_NO_SUCH_TREE = 7,
  // A tree of that name exists.
  SHALE_TREE_EXISTS = 8,
  // There is no database at the path, and none was to be created.
  SHALE_NO_DATABASE = 9,
  // An earlier failure makes further writes unsafe: close and open anew.
  SHALE_POISONED = 10,
  // The database is open for reading only.
  SHALE_READ_ONLY = 11,
  // The database has been closed.
  SHALE_CLOSED = 12,
  // Write conflict: another transaction changed the same rows. Roll back and try again from the
  // beginning.
  SHALE_CONFLICT = 13,
  // Lock wait timeout: a lock was not granted in time. The text names it, and who blocks it. The
  // transaction keeps its locks: try the call again, or roll back.
  SHALE_LOCK_TIMEOUT = 14,
  // Transactions waited for each other, and this one was rolled back; the text says who waited
  // for whom. Try again from the beginning.
  SHALE_DEADLOCK = 15,
  // The lock table is full, and escalation failed: other transactions hold keys in between.
  SHALE_LOCKS_FULL = 16,
  // The part of a write set that cannot leave memory is full.
  SHALE_TRANSACTION_FULL = 17,
  // The transaction was rolled back before; the text says why.
  SHALE_ROLLED_BACK = 18,
  // A wait for a lock was interrupted. The transaction keeps its locks.
  SHALE_INTERRUPTED = 19,
  // The process is a fork of the one that opened the database and cannot write to it: open it
  // after the fork, in one process.
  SHALE_FORKED = 20,
  // Two rows have the same key, so no unique tree can be built; shale_error_duplicate has them.
  SHALE_DUPLICATE = 21,
  // The files of the database may take no more, by its `space_limit`: the write has had no
  // effect. Reads and deletes go on, and writes succeed again by themselves once there is room.
  SHALE_SPACE_LIMIT = 22,
  // Something that this version of the interface has no kind for; see the text.
  SHALE_OTHER = 98,
  // A defect of the library; the text says where.
  SHALE_PANIC = 99,
} shale_error_kind;

// What a transaction sees of others.
typedef enum {
  // Each read, or each statement (shale_txn_begin_statement), sees what is committed then.
  SHALE_READ_COMMITTED = 0,
  // Plain reads see one snapshot, locking reads the newest; locking scans lock the gaps too.
  SHALE_REPEATABLE_READ = 1,
  // As if transactions ran one after the other: plain reads lock.
  SHALE_SERIALIZABLE = 2,
} shale_isolation;

// What keeps transactions apart, and what happens when one writes what others have changed since
// its snapshot.
typedef enum {
  // Locks, for which it waits. What was changed since its snapshot is SHALE_CONFLICT: nothing
  // is overwritten that was not seen.
  SHALE_LOCKS = 0,
  // Locks; what was changed since its snapshot is overwritten, as InnoDB does.
  SHALE_LOCKS_LATEST = 1,
  // No locks and no waits: it is checked at commit, which may be SHALE_CONFLICT.
  SHALE_OPTIMISTIC = 2,
} shale_concurrency;

// How a read locks its rows.
typedef enum {
  // Not, but for SHALE_SERIALIZABLE.
  SHALE_LOCK_NONE = 0,
  // Others may read and lock shared, not write.
  SHALE_LOCK_SHARED = 1,
  // Others may neither write nor lock.
  SHALE_LOCK_EXCLUSIVE = 2,
} shale_lock;

// What shale_report tells of. Fields may be added to what it gives.
typedef enum {
  // The transactions that have not ended, a list: id, age_seconds, isolation, optimistic,
  // prepared (its name, or null), writes, write_bytes, keys_locked, trees, waits_for (a text, or
  // null), blockers (ids).
  SHALE_REPORT_TRANSACTIONS = 0,
  // Up to 10,000 locks, a list: transaction, tree, waits, text.
  SHALE_REPORT_LOCKS = 1,
  // The last deadlock, or null: count, seconds_ago, text, deadlock (waits, victim).
  SHALE_REPORT_DEADLOCK = 2,
  // The trees, a list: name, rows (an estimate), tables, bytes (of tables on disk), raw_bytes
  // (before compression, about), ratio, entries, deletes, levels, memtable_bytes, blob_files,
  // debt_bytes.
  SHALE_REPORT_TREES = 3,
  // The levels of the trees, a list: tree, level, tables, bytes, target_bytes, codec, ratio, and
  // what compactions into it have read, written and taken.
  SHALE_REPORT_COMPACTION = 4,
  // The statistics: levels, compactions, stalls, cache, filters, latencies, CPU,
  // lock_escalations (how often locks of keys were made ranges).
  SHALE_REPORT_STATS = 5,
  // The same as tables to read, which is no JSON.
  SHALE_REPORT_STATS_TEXT = 6,
} shale_report_kind;

// Where a scan goes. Inside its bounds, and without a row to start from SHALE_NEXT and SHALE_PREV
// do nothing.
typedef enum {
  // To the first row.
  SHALE_FIRST = 0,
  // To the last row.
  SHALE_LAST = 1,
  // To the next row, or to none after the last.
  SHALE_NEXT = 2,
  // To the previous row, or to none before the first.
  SHALE_PREV = 3,
  // To the first row at or after a key.
  SHALE_AT_OR_AFTER = 4,
  // To the last row at or before a key.
  SHALE_AT_OR_BEFORE = 5,
} shale_seek;

// Whether a tree must be there.
typedef enum {
  // It must exist.
  SHALE_TREE_THERE = 0,
  // It must not exist, and is created.
  SHALE_TREE_NEW = 1,
  // It is created if it does not exist.
  SHALE_TREE_THERE_OR_NEW = 2,
} shale_tree_mode;

// What an operation of shale_txn_apply does with its key.
typedef enum {
  // As shale_txn_put.
  SHALE_ACTION_PUT = 0,
  // As shale_txn_insert with SHALE_LOCK_EXCLUSIVE.
  SHALE_ACTION_INSERT = 1,
  // As shale_txn_insert with SHALE_LOCK_SHARED.
  SHALE_ACTION_INSERT_OR_SHARE = 2,
  // As shale_txn_delete of one key; the value is not used.
  SHALE_ACTION_DELETE = 3,
  // As shale_txn_put_unlocked, but only if `changed` has become true.
  SHALE_ACTION_PUT_IF_CHANGED = 4,
  // As shale_txn_put_unlocked.
  SHALE_ACTION_PUT_UNLOCKED = 5,
  // Nothing, but the key must have a value, own writes included: it is locked shared, and looked
  // at as it is now. The value is not used.
  SHALE_ACTION_REQUIRE = 6,
  // As SHALE_ACTION_DELETE, but as shale_txn_put_unlocked without a lock, and without a look at
  // whether the key has been changed.
  SHALE_ACTION_DELETE_UNLOCKED = 7,
} shale_action;

// Whether keys of a tree that is built are of one row each, and how an entry's value says which.
typedef enum {
  // They need not be: a key tells its row.
  SHALE_NOT_UNIQUE = 0,
  // The value is the row's key.
  SHALE_UNIQUE_VALUE = 1,
  // The value begins with the length of the row's key, as a varint (seven bits a byte, the
  // lowest first, the eighth set in all bytes but the last), then the row's key. A length of 0
  // is for entries that are not unique, such as those with a NULL: their own key tells their
  // row.
  SHALE_UNIQUE_COUNTED = 2,
} shale_unique;

// Operations on any trees of one database. Of several on one key the last counts.
typedef struct shale_batch shale_batch;

// A tree that is being built while writers go on.
typedef struct shale_build shale_build;

// Bytes that belong to the caller: a value (often a part of a block in the cache, which stays
// there while this lives), or a report.
typedef struct shale_bytes shale_bytes;

// The settings of a database, for shale_open, and of a tree, for shale_tree_open.
typedef struct shale_config shale_config;

// An open database.
typedef struct shale_db shale_db;

// Why a call failed.
typedef struct shale_error shale_error;

// A bulk load that is under way. Its rows are seen when it is finished, all at once.
typedef struct shale_ingest shale_ingest;

// A flag that ends waits for locks. Threads may set it while others wait.
typedef struct shale_interrupt shale_interrupt;

// A scan that locks what it passes, rows and gaps, until its transaction ends.
typedef struct shale_locking_scan shale_locking_scan;

// A transaction that was prepared: durable, seen by nobody, its keys locked until it is committed
// or rolled back, also after a crash or another open. Freeing the handle decides nothing.
typedef struct shale_prepared shale_prepared;

// A value that is read in parts.
typedef struct shale_reader shale_reader;

// The keys that were changed between two snapshots.
typedef struct shale_round shale_round;

// A position in the rows of a tree as they were at one moment.
typedef struct shale_scan shale_scan;

// A moment in the commit order at which reads can be repeated. What was there then is kept on disk
// while the snapshot lives.
typedef struct shale_snapshot shale_snapshot;

// Tells which rows of a tree have been changed since they were copied.
typedef struct shale_tracker shale_tracker;

// A named tree: an ordered map from keys to values.
typedef struct shale_tree shale_tree;

// A transaction over any trees of one database. Used by one thread at a time. SHALE_LOCK_TIMEOUT
// and SHALE_LOCKS_FULL leave it as it was before the call; SHALE_DEADLOCK has rolled it back:
// calls with it then return SHALE_ROLLED_BACK, and it is to be ended by shale_txn_rollback.
typedef struct shale_txn shale_txn;

// Gives the next bytes of a value: up to `capacity` of them, to `buffer`. Answers how many, 0 at
// the end, and a negative number to give up. No exception may leave it.
typedef int64_t (*shale_read_fn)(void *context, void *buffer, size_t capacity);

// Is told that the transaction `waiter` waits for a lock that `holder` has, by the numbers of
// shale_txn_id; or that it waits no more, with the holder 0. No exception may leave it.
typedef void (*shale_wait_callback)(void *context, uint64_t waiter, uint64_t holder);

// One operation of shale_txn_apply.
typedef struct {
  // The tree that it writes to, or looks at.
  const shale_tree *tree;
  // A shale_action.
  int action;
  // The key.
  const void *key;
  // Its length.
  size_t key_len;
  // The value.
  const void *value;
  // Its length.
  size_t value_len;
} shale_operation;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The kind of an error; SHALE_OK of NULL.
shale_error_kind shale_error_kind_of(const shale_error *error);

// What went wrong, with which file or setting, and what to do: a sentence in English, valid until
// the error is freed. Of NULL: an empty text.
const char *shale_error_text(const shale_error *error);

// Of a SHALE_DUPLICATE: puts the key into the first of these three places, and the keys of two
// rows that have it into the others, with their lengths; they are valid until the error is freed.
// False of any other error, and nothing is stored.
bool shale_error_duplicate(const shale_error *error, const void **places, size_t *lens);

// Frees an error.
void shale_error_free(shale_error *error);

// Settings with their defaults.
SHALE_MUST_USE shale_error *shale_config_new(shale_config **config);

// Sets one of them. Names are those of docs/settings.md: `memory_bytes`, `memtable_bytes`,
// `table_bytes`, `background_threads`, `space_limit`, `sync` (`on_request`, `always`,
// `every_millis:100`), `create`, and of new trees `tree.block_bytes`, `tree.filter_bits`,
// `tree.blob_bytes`, `tree.dictionary` (`true`, `false`), `tree.codecs.upper`,
// `tree.codecs.middle`, `tree.codecs.bottommost` (`auto`, `none`, `lz4`, `zlib:6`, `zstd:3`).
// Whether those of a database agree with each other is checked by shale_open.
SHALE_MUST_USE
shale_error *shale_config_set(shale_config *config,
                              const char *name,
                              const char *value);

// Frees settings.
void shale_config_free(shale_config *config);

// The version of the library, such as `0.1.0`.
const char *shale_version(void);

// Opens the database in the folder `path`, or creates it. `config` may be NULL: all defaults. With
// `read_only` nobody may have it open for writing, nothing is changed on disk, and what its log
// holds is read too; beside a writer, see shale_open_follower.
SHALE_MUST_USE
shale_error *shale_open(const char *path,
                        const shale_config *config,
                        bool read_only,
                        shale_db **db);

// Opens the database in the folder `path` for reading, also while another process writes it. What
// is seen is the state at one position in the commit order, and stays so until
// shale_follower_refresh; commits may be seen that are not durable yet. No lock is taken and
// nothing is changed on disk. It holds every table and blob file open, and must run on the
// writer's machine. `config` may be NULL.
SHALE_MUST_USE
shale_error *shale_open_follower(const char *path,
                                 const shale_config *config,
                                 shale_db **db);

// Moves a follower on to what the writer has committed by now. Writes the position in the
// commit order that it shows to `seq`, which may be NULL. Snapshots, scans and plain reads of
// transactions go on reading what they have seen; those at SHALE_READ_COMMITTED move on, and so do
// locking reads but for SHALE_SERIALIZABLE. After an error all is as it was, and another call may
// succeed.
SHALE_MUST_USE shale_error *shale_follower_refresh(const shale_db *db, uint64_t *seq);

// Closes a database and frees its handle, also if it fails: no other call with this handle may be
// under way, as for any handle that is freed. Calls with trees, scans and other handles may be;
// they end as before the close, or return SHALE_CLOSED. What was committed is there at the next
// open, whether or not this succeeds; an error says that the last of it may not survive a crash of
// the machine. Of NULL: nothing.
SHALE_MUST_USE shale_error *shale_close(shale_db *db);

// Commits a batch: all of it or nothing, over all its trees. With `sync` it is durable when the
// call returns, and so is every commit before it. The batch stays as it is and can be used again.
SHALE_MUST_USE shale_error *shale_write(const shale_db *db, const shale_batch *batch, bool sync);

// Makes every commit so far durable.
SHALE_MUST_USE shale_error *shale_sync(const shale_db *db);

// Writes the memtables of a tree, or (NULL) of all trees, to tables, and returns when it is done.
SHALE_MUST_USE shale_error *shale_flush(const shale_db *db, const shale_tree *tree);

// Flushes, and compacts into the last level the keys of a tree from `lower` up to but without
// `upper` (NULL for either is no bound), or, if `tree` is NULL, every tree, without bounds. It is
// never needed: when writes stop the engine by itself brings its trees into the best shape for
// reading.
SHALE_MUST_USE
shale_error *shale_compact(const shale_db *db,
                           const shale_tree *tree,
                           const void *lower,
                           size_t lower_len,
                           const void *upper,
                           size_t upper_len);

// Waits until background work has nothing left to do. Writes meanwhile make the wait longer.
SHALE_MUST_USE shale_error *shale_wait_idle(const shale_db *db);

// Sets what all files of the database may take together, in bytes; 0 is no limit. It is refused
// (SHALE_CONFIG) if the files take more, or if it is too little for the memtables.
SHALE_MUST_USE shale_error *shale_set_space_limit(const shale_db *db, uint64_t bytes);

// Makes a copy of the database in the folder `dir`, which must not exist, by hard links: it takes
// no space for what both share, and opens as a database of its own. Complete, or not there.
SHALE_MUST_USE shale_error *shale_checkpoint(const shale_db *db, const char *dir);

// Reads and checks every byte of the database. `report` becomes JSON: tables, blobs, bytes,
// entries, and damage, a list of texts. It fails if there is damage, and gives the report all the
// same.
// `report` may be NULL.
SHALE_MUST_USE shale_error *shale_verify(const shale_db *db, shale_bytes **report);

// The names of the trees, in order, each ended by a zero, one after the other; `count` becomes how
// many there are.
SHALE_MUST_USE
shale_error *shale_tree_names(const shale_db *db,
                              shale_bytes **names,
                              size_t *count);

// A snapshot of the database as it is now. `seq`, which may be NULL, becomes its sequence number:
// its position in the commit order.
SHALE_MUST_USE
shale_error *shale_snapshot_new(const shale_db *db,
                                shale_snapshot **snapshot,
                                uint64_t *seq);

// Ends a snapshot.
void shale_snapshot_free(shale_snapshot *snapshot);

// The tree of this name, as a shale_tree_mode says. What is created gets the settings of `config`
// that begin with `tree.`; NULL: all defaults with SHALE_TREE_NEW, with SHALE_TREE_THERE_OR_NEW
// those that the database has for new trees.
SHALE_MUST_USE
shale_error *shale_tree_open(const shale_db *db,
                             const char *name,
                             int mode,
                             const shale_config *config,
                             shale_tree **tree);

// Drops a tree, at the same cost whatever its size. Its space is free as soon as no scan and no
// snapshot's read is in it; calls with its handles return SHALE_NO_SUCH_TREE.
SHALE_MUST_USE shale_error *shale_tree_drop(const shale_db *db, const char *name);

// Creates trees and drops others, in one step, at the cost of one: all of it is durable on return,
// or nothing has changed. A name that is dropped may be created again. `create` are `created`
// names, `drop` are `dropped`; `config` is as by shale_tree_open, the same for all. `trees` are
// `created` places for the handles, in the order of the names.
SHALE_MUST_USE
shale_error *shale_trees_change(const shale_db *db,
                                const char *const *create,
                                size_t created,
                                const shale_config *config,
                                const char *const *drop,
                                size_t dropped,
                                shale_tree **trees);

// A tree's name, valid until the handle is freed. Of NULL: an empty text.
const char *shale_tree_name(const shale_tree *tree);

// Frees a handle; the tree stays.
void shale_tree_free(shale_tree *tree);

// Whether a transaction that has not ended, a prepared one too, has an exclusive lock in the tree
// or one to write: a scan that locks all rows shared would wait for it. Batches and optimistic
// transactions have no locks before they commit.
SHALE_MUST_USE shale_error *shale_tree_is_locked(const shale_tree *tree, bool *is_locked);

// How much the keys from `lower` up to but without `upper` have (NULL for either is no bound), at
// a bounded cost, for the choice between plans of a query. Up to `exact_max` rows (some hundreds
// are cheap) are counted, unless many deletes are in the way; more are estimated: `exact` becomes
// whether `rows` is a count. With 0, the cheapest, few are estimated too. An estimate is never 0.
// `size` becomes about how many bytes on disk they take. Each of the three may be NULL, and then
// costs nothing.
SHALE_MUST_USE
shale_error *shale_tree_estimate(const shale_tree *tree,
                                 const void *lower,
                                 size_t lower_len,
                                 const void *upper,
                                 size_t upper_len,
                                 uint64_t exact_max,
                                 uint64_t *rows,
                                 bool *exact,
                                 uint64_t *size);

// Sets a key, which may be up to 64 KiB, to a value of up to 4 GiB. With `sync` it is durable when
// the call returns, and so is every commit before it.
SHALE_MUST_USE
shale_error *shale_put(const shale_tree *tree,
                       const void *key,
                       size_t key_len,
                       const void *value,
                       size_t value_len,
                       bool sync);

// As shale_put, with a value that `read` gives in parts, so that a large one is never in memory
// as a whole. If it gives up the key keeps what it had. `read` must not use the database.
SHALE_MUST_USE
shale_error *shale_put_stream(const shale_tree *tree,
                              const void *key,
                              size_t key_len,
                              shale_read_fn read,
                              void *context,
                              bool sync);

// Deletes a key, whether or not it is there; with `end` (not NULL) all keys from `key` up to but
// without `end`, at the cost of one write. `sync` as of shale_put.
SHALE_MUST_USE
shale_error *shale_delete(const shale_tree *tree,
                          const void *key,
                          size_t key_len,
                          const void *end,
                          size_t end_len,
                          bool sync);

// Where the bytes are, valid until they are freed, and in `len`, which may be NULL, how many. Of
// NULL: NULL and 0.
const void *shale_bytes_data(const shale_bytes *bytes, size_t *len);

// Frees them.
void shale_bytes_free(shale_bytes *bytes);

// The value of a key, at a snapshot or (NULL) as of now. `value` becomes NULL if there is none:
// that is no error.
SHALE_MUST_USE
shale_error *shale_get(const shale_tree *tree,
                       const shale_snapshot *snapshot,
                       const void *key,
                       size_t key_len,
                       shale_bytes **value);

// The values of `count` keys, all as of one moment: cheaper than one by one. `values` has room for
// so many; those of keys that are not there become NULL.
SHALE_MUST_USE
shale_error *shale_multi_get(const shale_tree *tree,
                             const void *const *keys,
                             const size_t *key_lens,
                             size_t count,
                             shale_bytes **values);

// Asks the file system for what look-ups of `count` keys read, and does not wait for it. `asked`
// becomes for how many blocks; 0 if all that is there is in memory.
SHALE_MUST_USE
shale_error *shale_prefetch(const shale_tree *tree,
                            const void *const *keys,
                            const size_t *key_lens,
                            size_t count,
                            uint64_t *asked);

// Reads the value of a key in parts, so that a large one is never in memory as a whole. `reader`
// becomes NULL if there is no such key, and `len`, which may be NULL, the length of the whole
// value. It is the cheapest way to ask whether a key is there: a large value is not read.
SHALE_MUST_USE
shale_error *shale_reader_open(const shale_tree *tree,
                               const void *key,
                               size_t key_len,
                               shale_reader **reader,
                               uint64_t *len);

// Copies the next bytes, up to `capacity` of them, to `buffer`; `count` becomes how many, 0 at the
// end. The rest of `buffer`, and all of it if the call fails, is zeros or bytes of the value.
SHALE_MUST_USE
shale_error *shale_reader_read(shale_reader *reader,
                               void *buffer,
                               size_t capacity,
                               size_t *count);

// Ends reading.
void shale_reader_free(shale_reader *reader);

// An empty batch.
SHALE_MUST_USE shale_error *shale_batch_new(shale_batch **batch);

// Sets a key.
SHALE_MUST_USE
shale_error *shale_batch_put(shale_batch *batch,
                             const shale_tree *tree,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len);

// Deletes a key; with `end` (not NULL) all keys from `key` up to but without `end`.
SHALE_MUST_USE
shale_error *shale_batch_delete(shale_batch *batch,
                                const shale_tree *tree,
                                const void *key,
                                size_t key_len,
                                const void *end,
                                size_t end_len);

// How many operations are in it. Of NULL: 0.
size_t shale_batch_count(const shale_batch *batch);

// Empties it, and keeps its memory for what comes. Of NULL: nothing.
void shale_batch_clear(shale_batch *batch);

// Frees it.
void shale_batch_free(shale_batch *batch);

// Scans the keys from `lower` up to but without `upper` (NULL for either: no bound), at a snapshot
// or (NULL) as of now. `fill_cache` keeps blocks that had to be read in the cache: say false for a
// scan of much that will not be read again soon. It stands on no row until it is told where to go.
SHALE_MUST_USE
shale_error *shale_scan_new(const shale_tree *tree,
                            const shale_snapshot *snapshot,
                            const void *lower,
                            size_t lower_len,
                            const void *upper,
                            size_t upper_len,
                            bool fill_cache,
                            shale_scan **scan);

// Goes to a row, as a shale_seek says; to none if there is no such row. `key` is for those that
// name one, else it may be NULL.
SHALE_MUST_USE
shale_error *shale_scan_move(shale_scan *scan,
                             int how,
                             const void *key,
                             size_t key_len);

// Moves a scan by SHALE_FIRST, SHALE_LAST, SHALE_NEXT or SHALE_PREV and gives its row, as
// shale_scan_key and shale_scan_value do, in one call. Without a row, and if it fails, `key` and
// `value` become NULL. With NULL for `value` and `value_len` no value is read, which saves the
// read of a file where it is large.
SHALE_MUST_USE
shale_error *shale_scan_step(shale_scan *scan,
                             int how,
                             const void **key,
                             size_t *key_len,
                             const void **value,
                             size_t *value_len);

// The row's key, valid until the scan moves or is freed, with its length in `len`, which may be
// NULL. NULL and 0 without a row: so it tells whether there is one. Of NULL: NULL.
const void *shale_scan_key(const shale_scan *scan, size_t *len);

// The row's value, valid until the scan moves or is freed. A large one is read from its file, as a
// whole. Without a row: SHALE_INVALID_ARGUMENT.
SHALE_MUST_USE
shale_error *shale_scan_value(const shale_scan *scan,
                              const void **value,
                              size_t *len);

// Ends a scan.
void shale_scan_free(shale_scan *scan);

// Begins a bulk load.
SHALE_MUST_USE shale_error *shale_ingest_new(const shale_tree *tree, shale_ingest **ingest);

// Adds a row; its key must be greater than that of the row before. If it is not, the load can go
// on with another row; after any other error free it.
SHALE_MUST_USE
shale_error *shale_ingest_add(shale_ingest *ingest,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len);

// Makes the rows durable and seen, and ends the load, also if it fails: then none is. `rows`
// becomes how many there are; it may be NULL.
SHALE_MUST_USE shale_error *shale_ingest_finish(shale_ingest *ingest, uint64_t *rows);

// Gives a load up: none of its rows is seen.
void shale_ingest_free(shale_ingest *ingest);

// Begins to build the tree `name` from `source`. `tree` becomes the handle of the tree that
// whoever changes the source from now on writes to: the entries that come and go, in the same
// batch or transaction. While this call runs nobody may be changing the source who does not;
// transactions that hold locks there, prepared ones too, are waited for, `wait_millis` at most.
// `config` is as by shale_tree_open. Sorting takes `memory_bytes`; what is beyond goes to files.
// 0: entries come in the order of their keys, and each is written at once (not of unique builds).
//
// If keys are `unique` (a shale_unique), that tree is not the new one but one of its changes, and
// writers put and delete entries there under keys by shale_entry_of_row, without any look for
// duplicates. The new tree cannot be written to before it is finished.
SHALE_MUST_USE
shale_error *shale_build_new(const shale_tree *source,
                             const char *name,
                             const shale_config *config,
                             int unique,
                             uint64_t memory_bytes,
                             uint64_t wait_millis,
                             shale_build **build,
                             shale_tree **tree);

// Adds an entry (key and value, not by shale_entry_of_row), in any order (but see
// shale_build_new). All must be those of one snapshot of the source, taken since the build has
// begun. After an error the build has failed: free it.
SHALE_MUST_USE
shale_error *shale_build_add(shale_build *build,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len);

// Of a unique build, once all entries were added: takes what writers have changed since the last
// call, while they go on. `changes` becomes how many entries that were. Call it until they are
// few, or no fewer than before. SHALE_DUPLICATE: two entries that were added have the same key.
// After an error the build has failed: free it.
SHALE_MUST_USE shale_error *shale_build_catch_up(shale_build *build, uint64_t *changes);

// Completes the tree with the entries added, beneath what writers have written meanwhile, and
// frees the build. After an error the build is there, and what writers write to: free it once they
// are held off. `entries` becomes how many were added; it may be NULL.
//
// Of a unique build: takes the last changes, so nobody may be writing to the source meanwhile;
// prepared transactions are waited for. SHALE_DUPLICATE: two rows have the same key. Afterwards
// open the tree by its name, and write to it instead of to its changes.
SHALE_MUST_USE shale_error *shale_build_finish(shale_build *build, uint64_t *entries);

// Gives a build up, and drops its tree and that of its changes. Hold writers off meanwhile: who
// then writes there gets SHALE_NO_SUCH_TREE.
void shale_build_free(shale_build *build);

// The key under which writers put and delete an entry of a unique tree while it is built: the
// entry's key, with a byte 1 after each 0; two bytes 0; the key of its row (none if the entry's
// key tells it). Answers with its length, and writes it to `to` if that has room for `to_len`
// bytes or more. 0: an argument is none.
size_t shale_entry_of_row(const void *key,
                          size_t key_len,
                          const void *row,
                          size_t row_len,
                          void *to,
                          size_t to_len);

// Waits until no transaction, prepared ones too, holds a lock to write in the tree: until all have
// ended that have written to it. SHALE_LOCK_TIMEOUT after `wait_millis`.
SHALE_MUST_USE
shale_error *shale_tree_wait_for_writers(const shale_tree *tree,
                                         uint64_t wait_millis);

// Begins to keep which rows of `source` are changed, so that it can be copied in another form
// while writers go on. `tree` becomes the handle of a new tree, `name`: whoever changes a row from
// now on puts its key there too, in the same batch or transaction (SHALE_ACTION_PUT_UNLOCKED),
// whatever the change is. While this call runs nobody may be changing the source who does not;
// transactions that have written to it, prepared ones too, are waited for, `wait_millis` at most.
// `snapshot` becomes what the copy begins with.
SHALE_MUST_USE
shale_error *shale_tracker_new(const shale_tree *source,
                               const char *name,
                               uint64_t wait_millis,
                               shale_tracker **tracker,
                               shale_tree **tree,
                               shale_snapshot **snapshot);

// What was changed since `before`: the snapshot of shale_tracker_new, or that with which the last
// round has ended; up to `after`. While rounds have many keys, begin them with a `flush` of the
// tree of changes, so that the next one reads none of them again. The last one is begun without,
// when nobody writes and shale_tree_wait_for_writers of the source has ended.
SHALE_MUST_USE
shale_error *shale_round_begin(const shale_tracker *tracker,
                               bool flush,
                               shale_round **round,
                               shale_snapshot **before,
                               shale_snapshot **after);

// The next key of a round, ascending, or the `first`: there may be several walks, one after the
// other. It is valid until the next call; NULL: there is none.
SHALE_MUST_USE
shale_error *shale_round_next(shale_round *round,
                              bool first,
                              const void **key,
                              size_t *key_len);

// The copy has what the round has. Frees the round, after an error too; the copy is of no use
// then. But a round of another tracker, or one that began before the last one ended, is
// SHALE_INVALID_ARGUMENT, and nothing has changed.
SHALE_MUST_USE shale_error *shale_round_end(shale_tracker *tracker, shale_round *round);

// Gives a round up; its keys come again in the next one.
void shale_round_free(shale_round *round);

// Ends it, and drops the tree of changes. Hold writers off meanwhile: who then writes there gets
// SHALE_NO_SUCH_TREE.
void shale_tracker_free(shale_tracker *tracker);

// From now on `callback` is told of waits for locks, once for each transaction that is in the way:
// before a wait begins, and about every 50 milliseconds while it lasts; and with the holder 0 when
// it has ended. The thread that waits calls it, several at once; it may not use the waiting
// transaction, nor close the database. It cannot be taken back: `context` is needed until
// shale_close has returned, which waits for calls under way; there are none from then on.
SHALE_MUST_USE
shale_error *shale_observe_lock_waits(const shale_db *db,
                                      shale_wait_callback callback,
                                      void *context);

// Begins a transaction, of a shale_isolation and a shale_concurrency. It waits for each lock for
// up to `lock_timeout_millis`, 0: not at all.
SHALE_MUST_USE
shale_error *shale_txn_begin(const shale_db *db,
                             int isolation,
                             int concurrency,
                             uint64_t lock_timeout_millis,
                             shale_txn **txn);

// The number of a transaction, which errors about locks name. Of NULL: 0.
uint64_t shale_txn_id(const shale_txn *txn);

// At SHALE_READ_COMMITTED: begins a statement, whose plain reads all see what is committed when
// the first of them is made. At SHALE_REPEATABLE_READ: takes the snapshot now, if no read has
// taken it yet.
SHALE_MUST_USE shale_error *shale_txn_begin_statement(shale_txn *txn);

// The value of a key, own writes included; with a lock (a shale_lock), the newest. `value`
// becomes NULL if there is none: that is no error, and the key is locked all the same.
SHALE_MUST_USE
shale_error *shale_txn_get(shale_txn *txn,
                           const shale_tree *tree,
                           int lock,
                           const void *key,
                           size_t key_len,
                           shale_bytes **value);

// As shale_txn_get, for who needs the value for a moment: the transaction keeps it until the next
// call of this, and to its end. `value` becomes NULL if there is none.
SHALE_MUST_USE
shale_error *shale_txn_read(shale_txn *txn,
                            const shale_tree *tree,
                            int lock,
                            const void *key,
                            size_t key_len,
                            const void **value,
                            size_t *value_len);

// Sets a key. Others see it when the transaction has committed.
SHALE_MUST_USE
shale_error *shale_txn_put(shale_txn *txn,
                           const shale_tree *tree,
                           const void *key,
                           size_t key_len,
                           const void *value,
                           size_t value_len);

// Deletes a key, whether or not it is there; with `end` (not NULL) all keys from `key` up to but
// without `end`, and locks the whole range.
SHALE_MUST_USE
shale_error *shale_txn_delete(shale_txn *txn,
                              const shale_tree *tree,
                              const void *key,
                              size_t key_len,
                              const void *end,
                              size_t end_len);

// A position to roll back to, such as before a statement: 0, 1, and so on.
SHALE_MUST_USE shale_error *shale_txn_savepoint(shale_txn *txn, size_t *savepoint);

// Undoes what was written since a savepoint, which stays; later ones are gone. Locks are kept, but
// for those of keys of which nothing else was asked (at SHALE_SERIALIZABLE also those).
SHALE_MUST_USE shale_error *shale_txn_rollback_to(shale_txn *txn, size_t savepoint);

// Gives up a savepoint and all later ones; what was written stays.
SHALE_MUST_USE shale_error *shale_txn_release(shale_txn *txn, size_t savepoint);

// Undoes all that was written to a tree, whatever savepoints there are: for one that is to be
// dropped, or was. Otherwise the commit of a transaction that has written to a tree that is not
// there fails. Locks are kept.
SHALE_MUST_USE shale_error *shale_txn_forget(shale_txn *txn, const shale_tree *tree);

// Bounds what the writes from now on may take of memory, 512 MiB at most; what is beyond goes to
// files. Without this: a sixteenth of the database's memory_bytes, 64 MiB at most. Of
// SHALE_OPTIMISTIC what is beyond is SHALE_TRANSACTION_FULL, and without this it is 512 MiB.
SHALE_MUST_USE shale_error *shale_txn_set_memory(shale_txn *txn, uint64_t memory_bytes);

// Makes all that was written visible, at one position in the commit order, and with `sync`
// durable. It frees the transaction, also if it fails: then it has been rolled back (of
// SHALE_POISONED the outcome is known after the next open).
SHALE_MUST_USE shale_error *shale_txn_commit(shale_txn *txn, bool sync);

// Undoes all of it, and frees the transaction.
void shale_txn_rollback(shale_txn *txn);

// Sets a key if it has no value, and locks it in either case, in one step: `inserted` becomes
// whether it was set, `existing` (which may be NULL) the value that is in the way, or NULL. Looked
// at is the newest that is committed, whatever a snapshot shows, and what the transaction has
// written. Who inserts the same key waits, and then finds it. What is in the way is locked as
// `lock` says: SHALE_LOCK_SHARED for one who leaves it as it is, or SHALE_LOCK_EXCLUSIVE.
SHALE_MUST_USE
shale_error *shale_txn_insert(shale_txn *txn,
                              const shale_tree *tree,
                              const void *key,
                              size_t key_len,
                              const void *value,
                              size_t value_len,
                              int lock,
                              bool *inserted,
                              shale_bytes **existing);

// The values of `count` keys as by shale_txn_get without a lock, all as of one moment: cheaper
// than one by one. `values` has room for so many; those of keys that are not there become NULL.
SHALE_MUST_USE
shale_error *shale_txn_multi_get(shale_txn *txn,
                                 const shale_tree *tree,
                                 const void *const *keys,
                                 const size_t *key_lens,
                                 size_t count,
                                 shale_bytes **values);

// Locks a key, there or not, as shale_txn_get with SHALE_LOCK_SHARED or SHALE_LOCK_EXCLUSIVE does,
// but does not look it up. So many keys are locked one by one, and then looked up together by
// shale_txn_multi_get_locked.
SHALE_MUST_USE
shale_error *shale_txn_lock(shale_txn *txn,
                            const shale_tree *tree,
                            int lock,
                            const void *key,
                            size_t key_len);

// The newest values of `count` keys that the transaction has locked, shared or exclusive: what
// shale_txn_get with a lock gives for each, but cheaper. It locks nothing itself: of a key that is
// not locked the value may be out of date at once. `values` has room for `count`; those of keys
// that are not there become NULL.
SHALE_MUST_USE
shale_error *shale_txn_multi_get_locked(shale_txn *txn,
                                        const shale_tree *tree,
                                        const void *const *keys,
                                        const size_t *key_lens,
                                        size_t count,
                                        shale_bytes **values);

// How long calls of the transaction wait for a lock from now on, 0: not at all. So a statement
// that is to skip what others have locked sets 0 and takes SHALE_LOCK_TIMEOUT for an answer.
SHALE_MUST_USE shale_error *shale_txn_set_lock_timeout(shale_txn *txn, uint64_t millis);

// Gives up the lock of a key that the last locking read or scan of it, or shale_txn_lock, has
// taken, as for a row that does not match after all. It does so at SHALE_READ_COMMITTED only, and
// of a key that was not written. A lock that the key had before that read it keeps: one that was
// shared is so again. `unlocked`, which may be NULL, becomes whether nothing of it is left.
SHALE_MUST_USE
shale_error *shale_txn_unlock(shale_txn *txn,
                              const shale_tree *tree,
                              const void *key,
                              size_t key_len,
                              bool *unlocked);

// A scan of what shale_txn_get finds without a lock, own writes of before the scan included. It
// may be used beside other calls, and after the transaction's end. With `newest` it is of what is
// committed by now instead, and of own writes: for reads that look for rows which they then lock.
// It locks nothing, and takes no snapshot for later reads.
SHALE_MUST_USE
shale_error *shale_txn_scan(shale_txn *txn,
                            const shale_tree *tree,
                            bool newest,
                            const void *lower,
                            size_t lower_len,
                            const void *upper,
                            size_t upper_len,
                            bool fill_cache,
                            shale_scan **scan);

// Makes a scan by shale_txn_scan one of another range, as if it were made anew, which costs less.
// If it fails the scan is at no row.
SHALE_MUST_USE
shale_error *shale_txn_scan_again(shale_txn *txn,
                                  const shale_tree *tree,
                                  shale_scan *scan,
                                  const void *lower,
                                  size_t lower_len,
                                  const void *upper,
                                  size_t upper_len);

// A scan that shows the newest rows and locks them, shared or exclusive. It begins before the
// first row, or after the last, as its first step says.
SHALE_MUST_USE
shale_error *shale_locking_scan_new(shale_txn *txn,
                                    const shale_tree *tree,
                                    int lock,
                                    const void *lower,
                                    size_t lower_len,
                                    const void *upper,
                                    size_t upper_len,
                                    shale_locking_scan **scan);

// Goes to the next row, or to the one before, of the transaction that the scan is of; `found`
// becomes false at the end. If it fails the scan is where it was.
SHALE_MUST_USE
shale_error *shale_locking_scan_step(shale_locking_scan *scan,
                                     shale_txn *txn,
                                     bool backward,
                                     bool *found);

// The row that a scan stands on, valid until it steps, locks its row or is freed; both empty
// without a row.
SHALE_MUST_USE
shale_error *shale_locking_scan_row(const shale_locking_scan *scan,
                                    const void **key,
                                    size_t *key_len,
                                    const void **value,
                                    size_t *value_len);

// From now on the scan passes over rows that others have locked, without a wait, and does not keep
// others from adding rows to what it has passed.
SHALE_MUST_USE shale_error *shale_locking_scan_skip_locked(shale_locking_scan *scan);

// Shows rows that others have locked as last committed, unlocked; at SHALE_READ_COMMITTED only.
SHALE_MUST_USE shale_error *shale_locking_scan_peek_locked(shale_locking_scan *scan, bool peeks);

// Whether the row that the scan stands on is locked, and not only shown.
bool shale_locking_scan_is_locked(const shale_locking_scan *scan);

// Locks the row that is only shown, and shows it anew; `found`: whether it is still there.
SHALE_MUST_USE
shale_error *shale_locking_scan_lock_row(shale_locking_scan *scan,
                                         shale_txn *txn,
                                         bool *found);

// Ends a scan; what it has locked stays locked.
void shale_locking_scan_free(shale_locking_scan *scan);

// Prepares a transaction under a name of 1 to 256 bytes: it is neither committed nor rolled back
// until it is decided, and with `sync` not even a crash of the machine changes that. It frees the
// transaction, also if it fails: then it has been rolled back (of SHALE_POISONED the outcome is
// known after the next open).
SHALE_MUST_USE
shale_error *shale_txn_prepare(shale_txn *txn,
                               const void *xid,
                               size_t xid_len,
                               bool sync,
                               shale_prepared **prepared);

// With `commit` makes what was prepared visible, at one position in the commit order, else undoes
// it; and lets go of its locks. Without `sync` a crash of the machine may leave it prepared. If it
// fails it stays prepared, and can be tried again; but if it is the sync that fails, it is
// decided, a crash may leave it prepared, and all later writes are SHALE_POISONED. What has been
// decided before is SHALE_INVALID_ARGUMENT. The handle is to be freed in any case.
SHALE_MUST_USE
shale_error *shale_prepared_decide(const shale_prepared *prepared,
                                   bool commit,
                                   bool sync);

// Lets go of its locks but for those to write: of what it has read, and of gaps. Whoever waits for
// these goes on before it is decided. What it has read may then change before it is committed.
// What has been decided is SHALE_INVALID_ARGUMENT.
SHALE_MUST_USE shale_error *shale_prepared_release_reads(const shale_prepared *prepared);

// The name that it was prepared under, valid until the handle is freed. Of NULL: NULL, 0.
const void *shale_prepared_xid(const shale_prepared *prepared, size_t *len);

// Frees the handle, which decides nothing.
void shale_prepared_free(shale_prepared *prepared);

// What is prepared under this name and not decided; with `after` the first whose name comes after
// this one in the order of bytes, so that from NULL on it tells all, also if they are decided
// meanwhile: after a crash, those that the caller has to decide. `prepared` becomes NULL if there
// is none.
SHALE_MUST_USE
shale_error *shale_prepared_find(const shale_db *db,
                                 const void *xid,
                                 size_t xid_len,
                                 bool after,
                                 shale_prepared **prepared);

// A new flag, not set.
SHALE_MUST_USE shale_error *shale_interrupt_new(shale_interrupt **interrupt);

// Sets a flag, or takes it back. While it is set, calls with the transactions that have it return
// SHALE_INTERRUPTED instead of waiting for a lock; those that wait do so within 50 milliseconds.
// Of NULL: nothing.
void shale_interrupt_set(const shale_interrupt *interrupt, bool on);

// Frees a flag. Transactions that have it go on, without one: if it was set, it is so no more.
void shale_interrupt_free(shale_interrupt *interrupt);

// Gives a transaction its flag, instead of one that it has; several may have the same. NULL takes
// it away.
SHALE_MUST_USE
shale_error *shale_txn_set_interrupt(shale_txn *txn,
                                     const shale_interrupt *interrupt);

// A report of a shale_report_kind, as JSON.
SHALE_MUST_USE shale_error *shale_report(const shale_db *db, int kind, shale_bytes **report);

// Does `count` operations, in this order, all or none: a row and its entries in indexes. If one
// fails, what those before it have written is undone, as by a savepoint. `place` becomes `count`
// if all are done. Otherwise none is done, and it is the place of an insert whose key has a value,
// which `existing` becomes, or of a key that is required and has none: `existing` is NULL then,
// and the locks of what was required stay.
//
// With `watched` (not NULL) `changed` becomes true if others have written one of the keys in this
// tree since the snapshot that plain reads see: see shale_txn_wrote. It comes with what earlier
// calls for the same row have found.
SHALE_MUST_USE
shale_error *shale_txn_apply(shale_txn *txn,
                             const shale_operation *operations,
                             size_t count,
                             const shale_tree *watched,
                             bool *changed,
                             size_t *place,
                             shale_bytes **existing);

// As shale_txn_put, but without a lock, and without a look at whether the key has been changed. It
// is for keys that nobody writes who has not locked another key, which this transaction has: as an
// entry of an index belongs to its row.
SHALE_MUST_USE
shale_error *shale_txn_put_unlocked(shale_txn *txn,
                                    const shale_tree *tree,
                                    const void *key,
                                    size_t key_len,
                                    const void *value,
                                    size_t value_len);

// `wrote` becomes whether the transaction itself has written a key, or deleted it, and not undone
// that; `changed` whether others have written it since the snapshot that plain reads of the
// transaction see, so that what these show is no longer so (not as long as there is no snapshot).
// Either may be NULL, and is not looked for then.
SHALE_MUST_USE
shale_error *shale_txn_wrote(shale_txn *txn,
                             const shale_tree *tree,
                             const void *key,
                             size_t key_len,
                             bool *wrote,
                             bool *changed);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHALE_H */
