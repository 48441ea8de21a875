/* Calls every function of shale.h, and says at which line something is not as it should be. */
#define _POSIX_C_SOURCE 200809L
#include <shale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "smoke.c:%d: not so: %s\n", __LINE__, #condition);      \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* It goes well. */
#define OK(call) ok((call), #call, __LINE__)
/* It fails with this kind of error. */
#define FAILS(kind, call) fails((kind), (call), #call, __LINE__)

static void ok(shale_error *error, const char *call, int line) {
  CHECK(shale_error_kind_of(NULL) == SHALE_OK);
  if (error == NULL) return;
  fprintf(stderr, "smoke.c:%d: %s: %s\n", line, call, shale_error_text(error));
  shale_error_free(error);
  exit(1);
}

static void fails(shale_error_kind kind, shale_error *error, const char *call, int line) {
  if (error == NULL || shale_error_kind_of(error) != kind || strlen(shale_error_text(error)) < 8) {
    fprintf(stderr, "smoke.c:%d: %s: kind %d, not %d: %s\n", line, call,
            (int)shale_error_kind_of(error), (int)kind, shale_error_text(error));
    exit(1);
  }
  shale_error_free(error);
}

static bool is(const void *data, size_t len, const char *text) {
  return len == strlen(text) && memcmp(data, text, len) == 0;
}

static size_t length(const shale_bytes *bytes) {
  size_t len = 1;
  CHECK((shale_bytes_data(bytes, &len) == NULL) == (bytes == NULL));
  return len;
}

static bool are(const shale_bytes *bytes, const char *text) {
  return is(shale_bytes_data(bytes, NULL), length(bytes), text);
}

/* Whether a key has this value at a snapshot or now; NULL: whether it is not there. */
static bool has(shale_tree *tree, shale_snapshot *snapshot, const char *key, const char *value) {
  shale_bytes *found = NULL;
  shale_reader *reader = NULL;
  uint64_t len = 1;
  bool same;
  OK(shale_get(tree, snapshot, key, strlen(key), &found));
  if (snapshot == NULL) {
    OK(shale_reader_open(tree, key, strlen(key), &reader, &len));
    CHECK((reader != NULL) == (found != NULL) && len == length(found));
    shale_reader_free(reader);
  }
  same = found == NULL ? value == NULL
                       : value != NULL && are(found, value);
  shale_bytes_free(found);
  return same;
}

static void put(shale_tree *tree, const char *key, const char *value) {
  OK(shale_put(tree, key, strlen(key), value, strlen(value), false));
}

static void settings(shale_config **config, shale_config **tree) {
  OK(shale_config_new(config));
  OK(shale_config_set(*config, "memory_bytes", "33554432"));
  OK(shale_config_set(*config, "sync", "every_millis:50"));
  OK(shale_config_set(*config, "tree.codecs.bottommost", "zstd:5"));
  FAILS(SHALE_CONFIG, shale_config_set(*config, "memory", "1"));
  FAILS(SHALE_CONFIG, shale_config_set(*config, "memory_bytes", "much"));
  FAILS(SHALE_INVALID_ARGUMENT, shale_config_set(*config, NULL, "1"));
  FAILS(SHALE_INVALID_ARGUMENT, shale_config_set(NULL, "memory_bytes", "1"));
  FAILS(SHALE_INVALID_ARGUMENT, shale_config_set(*config, "memory_bytes", "\xff"));
  OK(shale_config_new(tree));
  OK(shale_config_set(*tree, "tree.codecs.bottommost", "lz4"));
  OK(shale_config_set(*tree, "tree.block_bytes", "4096"));
  FAILS(SHALE_CONFIG, shale_config_set(*tree, "tree.block_bytes", "1"));
}

static void change_trees(shale_db *db, const shale_config *config) {
  const char *three[] = {"x", "y", "z"}, *two[] = {"y", "new"}, *none[] = {NULL};
  shale_tree *made[3] = {NULL, NULL, NULL}, *renewed[2] = {NULL, NULL};
  OK(shale_trees_change(db, three, 3, config, NULL, 0, made));
  CHECK(strcmp(shale_tree_name(made[0]), "x") == 0 && strcmp(shale_tree_name(made[2]), "z") == 0);
  put(made[1], "k", "v");
  FAILS(SHALE_TREE_EXISTS, shale_trees_change(db, two, 2, NULL, three, 1, renewed));
  FAILS(SHALE_NO_SUCH_TREE, shale_trees_change(db, NULL, 0, NULL, two, 2, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_trees_change(db, none, 1, NULL, NULL, 0, renewed));
  FAILS(SHALE_INVALID_ARGUMENT, shale_trees_change(db, NULL, 1, NULL, NULL, 0, renewed));
  FAILS(SHALE_INVALID_ARGUMENT, shale_trees_change(db, two, 2, NULL, NULL, 0, NULL));
  CHECK(renewed[0] == NULL && has(made[1], NULL, "k", "v"));
  OK(shale_trees_change(db, two, 2, NULL, three, 3, renewed));
  CHECK(has(renewed[0], NULL, "k", NULL));
  FAILS(SHALE_NO_SUCH_TREE, shale_put(made[1], "k", 1, "v", 1, false));
  OK(shale_trees_change(db, NULL, 0, NULL, two, 2, NULL));
  OK(shale_trees_change(db, NULL, 0, NULL, NULL, 0, NULL));
  for (int n = 0; n < 3; n++) shale_tree_free(made[n]);
  for (int n = 0; n < 2; n++) shale_tree_free(renewed[n]);
}

static void trees(shale_db *db, shale_config *config, shale_tree **a, shale_tree **b) {
  shale_tree *again = NULL;
  shale_bytes *names = NULL;
  size_t count = 0;
  OK(shale_tree_open(db, "a", SHALE_TREE_NEW, config, a));
  FAILS(SHALE_TREE_EXISTS, shale_tree_open(db, "a", SHALE_TREE_NEW, NULL, &again));
  FAILS(SHALE_NO_SUCH_TREE, shale_tree_open(db, "b", SHALE_TREE_THERE, NULL, &again));
  FAILS(SHALE_INVALID_ARGUMENT, shale_tree_open(db, "b", 3, NULL, &again));
  OK(shale_tree_open(db, "b", SHALE_TREE_THERE_OR_NEW, NULL, b));
  OK(shale_tree_open(db, "c", SHALE_TREE_THERE_OR_NEW, config, &again));
  shale_tree_free(again);
  OK(shale_tree_open(db, "c", SHALE_TREE_THERE_OR_NEW, config, &again));
  shale_tree_free(again);
  OK(shale_tree_drop(db, "c"));
  change_trees(db, config);
  OK(shale_tree_open(db, "b", SHALE_TREE_THERE, NULL, &again));
  CHECK(strcmp(shale_tree_name(again), "b") == 0);
  CHECK(strcmp(shale_tree_name(NULL), "") == 0);
  shale_tree_free(again);
  OK(shale_tree_names(db, &names, &count));
  CHECK(count == 2 && length(names) == 4);
  CHECK(memcmp(shale_bytes_data(names, NULL), "a\0b\0", 4) == 0);
  shale_bytes_free(names);
}

static void reads_and_writes(shale_db *db, shale_tree *a) {
  shale_snapshot *before = NULL;
  uint64_t seq = 0, asked = 9;
  const void *keys[3] = {"one", "none", "two"};
  size_t lens[3] = {3, 4, 3};
  shale_bytes *values[3] = {NULL, NULL, NULL};
  put(a, "one", "1");
  put(a, "two", "2");
  OK(shale_snapshot_new(db, &before, NULL));
  shale_snapshot_free(before);
  OK(shale_snapshot_new(db, &before, &seq));
  CHECK(seq >= 2);
  OK(shale_put(a, "one", 3, "uno", 3, true));
  OK(shale_delete(a, "two", 3, NULL, 0, false));
  CHECK(has(a, NULL, "one", "uno") && has(a, NULL, "two", NULL));
  CHECK(has(a, before, "one", "1") && has(a, before, "two", "2"));
  shale_snapshot_free(before);
  put(a, "two", "2");
  OK(shale_multi_get(a, keys, lens, 3, values));
  CHECK(are(values[0], "uno"));
  CHECK(values[1] == NULL && length(NULL) == 0);
  CHECK(are(values[2], "2"));
  shale_bytes_free(values[0]);
  shale_bytes_free(values[2]);
  OK(shale_multi_get(a, NULL, NULL, 0, NULL));
  OK(shale_prefetch(a, keys, lens, 3, &asked));
  CHECK(asked == 0);
  OK(shale_prefetch(a, NULL, NULL, 0, &asked));
  FAILS(SHALE_INVALID_ARGUMENT, shale_prefetch(a, keys, lens, 3, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_prefetch(a, NULL, lens, 3, &asked));
  FAILS(SHALE_INVALID_ARGUMENT, shale_multi_get(a, NULL, lens, 3, values));
  FAILS(SHALE_INVALID_ARGUMENT, shale_put(a, NULL, 3, "", 0, false));
  FAILS(SHALE_INVALID_ARGUMENT, shale_put(NULL, "k", 1, "", 0, false));
  FAILS(SHALE_INVALID_ARGUMENT, shale_get(a, NULL, "k", 1, NULL));
  OK(shale_put(a, "empty", 5, NULL, 0, false));
  CHECK(has(a, NULL, "empty", ""));
  OK(shale_delete(a, "e", 1, "f", 1, false));
  CHECK(has(a, NULL, "empty", NULL));
}

static void batches(shale_db *db, shale_tree *a, shale_tree *b) {
  shale_batch *batch = NULL;
  OK(shale_batch_new(&batch));
  OK(shale_batch_put(batch, a, "x", 1, "1", 1));
  OK(shale_batch_put(batch, b, "x", 1, "2", 1));
  OK(shale_batch_delete(batch, a, "one", 3, NULL, 0));
  OK(shale_batch_delete(batch, a, "t", 1, "u", 1));
  CHECK(shale_batch_count(batch) == 4 && shale_batch_count(NULL) == 0);
  CHECK(has(a, NULL, "x", NULL));
  OK(shale_write(db, batch, true));
  CHECK(has(a, NULL, "x", "1") && has(b, NULL, "x", "2"));
  CHECK(has(a, NULL, "one", NULL) && has(a, NULL, "two", NULL));
  shale_batch_clear(batch);
  CHECK(shale_batch_count(batch) == 0);
  OK(shale_write(db, batch, false));
  FAILS(SHALE_INVALID_ARGUMENT, shale_write(db, NULL, false));
  shale_batch_free(batch);
}

static bool at(shale_scan *scan, const char *key) {
  size_t len = 1;
  const void *data = shale_scan_key(scan, &len);
  CHECK(data == shale_scan_key(scan, NULL));
  return data == NULL ? key == NULL && len == 0 : key != NULL && is(data, len, key);
}

static void scans(shale_tree *b) {
  uint64_t rows = 0;
  bool exact = false;
  shale_scan *scan = NULL;
  const void *value = NULL;
  size_t len = 0;
  int i;
  for (i = 0; i < 1000; i++) {
    char key[16];
    sprintf(key, "k%03d", i);
    put(b, key, key + 1);
  }
  OK(shale_scan_new(b, NULL, "k", 1, "k500", 4, false, &scan));
  CHECK(at(scan, NULL) && shale_scan_key(NULL, NULL) == NULL);
  FAILS(SHALE_INVALID_ARGUMENT, shale_scan_move(scan, 77, NULL, 0));
  FAILS(SHALE_INVALID_ARGUMENT, shale_scan_value(scan, &value, &len));
  OK(shale_scan_move(scan, SHALE_FIRST, NULL, 0));
  CHECK(at(scan, "k000"));
  OK(shale_scan_move(scan, SHALE_NEXT, NULL, 0));
  CHECK(at(scan, "k001"));
  OK(shale_scan_value(scan, &value, &len));
  CHECK(is(value, len, "001"));
  OK(shale_scan_move(scan, SHALE_PREV, NULL, 0));
  OK(shale_scan_move(scan, SHALE_PREV, NULL, 0));
  CHECK(at(scan, NULL));
  OK(shale_scan_move(scan, SHALE_LAST, NULL, 0));
  CHECK(at(scan, "k499"));
  OK(shale_scan_move(scan, SHALE_NEXT, NULL, 0));
  CHECK(at(scan, NULL));
  OK(shale_scan_move(scan, SHALE_AT_OR_AFTER, "k0105", 5));
  CHECK(at(scan, "k011"));
  OK(shale_scan_move(scan, SHALE_AT_OR_BEFORE, "k0105", 5));
  CHECK(at(scan, "k010"));
  const void *step_key = NULL, *step_value = NULL;
  size_t step_key_len = 0, step_value_len = 0;
#define STEP(how) shale_scan_step(scan, how, &step_key, &step_key_len, &step_value, &step_value_len)
  OK(STEP(SHALE_NEXT));
  CHECK(is(step_key, step_key_len, "k011") && is(step_value, step_value_len, "011"));
  FAILS(SHALE_INVALID_ARGUMENT, STEP(77));
  CHECK(step_key == NULL && step_value == NULL);
  FAILS(SHALE_INVALID_ARGUMENT, shale_scan_step(scan, SHALE_NEXT, NULL, &len, &value, &len));
  OK(shale_scan_step(scan, SHALE_FIRST, &step_key, &step_key_len, NULL, NULL));
  CHECK(is(step_key, step_key_len, "k000"));
  OK(shale_scan_value(scan, &step_value, &step_value_len));
  CHECK(is(step_value, step_value_len, "000"));
  FAILS(SHALE_INVALID_ARGUMENT,
        shale_scan_step(scan, SHALE_NEXT, &step_key, &step_key_len, &step_value, NULL));
  OK(STEP(SHALE_LAST));
  CHECK(is(step_key, step_key_len, "k499"));
  OK(STEP(SHALE_NEXT));
  CHECK(step_key == NULL && step_key_len == 0 && step_value == NULL && step_value_len == 0);
  shale_scan_free(scan);
  OK(shale_tree_estimate(b, "k1", 2, "k2", 2, 200, &rows, &exact, NULL));
  CHECK(exact && rows == 100);
  OK(shale_tree_estimate(b, NULL, 0, NULL, 0, 10, &rows, NULL, NULL));
  CHECK(rows > 500 && rows < 2000);
  OK(shale_tree_estimate(b, "y", 1, NULL, 0, 0, &rows, &exact, NULL));
  CHECK(exact && rows == 0);
  OK(shale_tree_estimate(b, NULL, 0, NULL, 0, 1, NULL, NULL, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_scan_new(NULL, NULL, NULL, 0, NULL, 0, true, &scan));
}

struct pattern {
  uint64_t at, end;
};

static int64_t next_of_pattern(void *context, void *buffer, size_t capacity) {
  struct pattern *pattern = context;
  size_t count = 0;
  while (count < capacity && pattern->at < pattern->end)
    ((unsigned char *)buffer)[count++] = (unsigned char)(pattern->at++ % 251);
  return (int64_t)count;
}

static int64_t gives_up(void *context, void *buffer, size_t capacity) {
  (void)context, (void)buffer, (void)capacity;
  return -1;
}

static void large_values(shale_tree *a) {
  struct pattern pattern = {0, 3 << 20};
  unsigned char part[10000];
  uint64_t read = 0, len = 0;
  size_t count = 0, i;
  shale_reader *reader = NULL;
  OK(shale_put_stream(a, "large", 5, next_of_pattern, &pattern, false));
  FAILS(SHALE_IO, shale_put_stream(a, "large", 5, gives_up, NULL, false));
  FAILS(SHALE_INVALID_ARGUMENT, shale_put_stream(a, "large", 5, NULL, NULL, false));
  OK(shale_reader_open(a, "large", 5, &reader, &len));
  CHECK(len == pattern.end);
  do {
    OK(shale_reader_read(reader, part, sizeof part, &count));
    for (i = 0; i < count; i++) CHECK(part[i] == (read + i) % 251);
    read += count;
  } while (count > 0);
  CHECK(read == pattern.end);
  shale_reader_free(reader);
  OK(shale_reader_open(a, "no such", 7, &reader, NULL));
  CHECK(reader == NULL);
}

static void loads(shale_db *db) {
  shale_tree *tree = NULL;
  shale_ingest *ingest = NULL;
  uint64_t rows = 0, size = 0;
  OK(shale_tree_open(db, "loaded", SHALE_TREE_THERE_OR_NEW, NULL, &tree));
  OK(shale_ingest_new(tree, &ingest));
  OK(shale_ingest_add(ingest, "a", 1, "1", 1));
  FAILS(SHALE_INVALID_ARGUMENT, shale_ingest_add(ingest, "a", 1, "2", 1));
  OK(shale_ingest_add(ingest, "b", 1, "2", 1));
  CHECK(has(tree, NULL, "a", NULL));
  OK(shale_ingest_finish(ingest, &rows));
  CHECK(rows == 2 && has(tree, NULL, "a", "1") && has(tree, NULL, "b", "2"));
  OK(shale_ingest_new(tree, &ingest));
  OK(shale_ingest_add(ingest, "c", 1, "3", 1));
  shale_ingest_free(ingest);
  CHECK(has(tree, NULL, "c", NULL));
  OK(shale_flush(db, tree));
  OK(shale_tree_estimate(tree, NULL, 0, NULL, 0, 0, NULL, NULL, &size));
  CHECK(size > 0);
  OK(shale_compact(db, tree, "a", 1, NULL, 0));
  FAILS(SHALE_INVALID_ARGUMENT, shale_compact(db, NULL, "a", 1, NULL, 0));
  OK(shale_tree_drop(db, "loaded"));
  FAILS(SHALE_NO_SUCH_TREE, shale_put(tree, "d", 1, "4", 1, false));
  shale_tree_free(tree);
}

static void builds(shale_db *db) {
  shale_tree *source = NULL, *tree = NULL;
  shale_build *build = NULL;
  uint64_t entries = 0;
  OK(shale_tree_open(db, "source", SHALE_TREE_THERE_OR_NEW, NULL, &source));
  OK(shale_put(source, "1", 1, "b", 1, false));
  OK(shale_build_new(source, "built", NULL, SHALE_NOT_UNIQUE, 1 << 20, 1000, &build, &tree));
  OK(shale_build_add(build, "b1", 2, "", 0));
  OK(shale_build_add(build, "a2", 2, "x", 1));
  OK(shale_delete(tree, "b1", 2, NULL, 0, false));
  OK(shale_build_finish(build, &entries));
  CHECK(entries == 2 && has(tree, NULL, "a2", "x") && has(tree, NULL, "b1", NULL));
  shale_tree_free(tree);
  FAILS(SHALE_TREE_EXISTS,
        shale_build_new(source, "built", NULL, SHALE_NOT_UNIQUE, 1 << 20, 1000, &build, &tree));
  OK(shale_tree_drop(db, "built"));
  OK(shale_build_new(source, "built", NULL, SHALE_NOT_UNIQUE, 0, 1000, &build, &tree));
  OK(shale_build_add(build, "b1", 2, "", 0));
  FAILS(SHALE_INVALID_ARGUMENT, shale_build_add(build, "a2", 2, "x", 1));
  shale_build_free(build);
  FAILS(SHALE_NO_SUCH_TREE, shale_put(tree, "d", 1, "4", 1, false));
  shale_tree_free(tree);
  FAILS(SHALE_INVALID_ARGUMENT,
        shale_build_new(source, "built", NULL, 3, 1 << 20, 1000, &build, &tree));
  shale_tree_free(source);
  OK(shale_tree_drop(db, "source"));
}

// Puts an entry of (key, row), each one letter, as a writer does while a unique tree is built.
static void put_changed(shale_tree *changes, const char *key, const char *row) {
  char entry[8];
  size_t len = shale_entry_of_row(key, 1, row, 1, entry, sizeof entry);
  CHECK(len == 4 && memcmp(entry, (char[]){*key, 0, 0, *row}, 4) == 0);
  OK(shale_put(changes, entry, len, row, 1, false));
}

static void unique_builds(shale_db *db) {
  shale_tree *source = NULL, *changes = NULL, *tree = NULL;
  shale_build *build = NULL;
  uint64_t count = 0;
  char entry[4] = "abc";
  const void *found[3];
  size_t lens[3];
  shale_error *error;
  OK(shale_tree_open(db, "source", SHALE_TREE_THERE_OR_NEW, NULL, &source));
  for (int twice = 0; twice < 2; twice++) {
    OK(shale_build_new(source, "unique", NULL, SHALE_UNIQUE_VALUE, 1 << 20, 1000, &build,
                       &changes));
    OK(shale_build_add(build, "k", 1, "1", 1));
    put_changed(changes, twice ? "k" : "l", "2");
    OK(shale_build_catch_up(build, &count));
    CHECK(count == 1);
    OK(shale_build_catch_up(build, &count));
    CHECK(count == 0);
    error = shale_build_finish(build, &count);
    CHECK(shale_error_duplicate(error, found, lens) == (twice == 1));
    shale_tree_free(changes);
    if (twice) {
      CHECK(shale_error_kind_of(error) == SHALE_DUPLICATE);
      CHECK(lens[0] == 1 && lens[1] == 1 && lens[2] == 1);
      CHECK(memcmp(found[0], "k", 1) == 0 && memcmp(found[1], "1", 1) == 0);
      CHECK(memcmp(found[2], "2", 1) == 0);
      shale_error_free(error);
      FAILS(SHALE_DUPLICATE, shale_build_finish(build, &count));
      shale_build_free(build);
      break;
    }
    OK(error);
    CHECK(count == 1);
    OK(shale_tree_open(db, "unique", SHALE_TREE_THERE, NULL, &tree));
    CHECK(has(tree, NULL, "k", "1") && has(tree, NULL, "l", "2"));
    shale_tree_free(tree);
    OK(shale_tree_drop(db, "unique"));
  }
  OK(shale_build_new(source, "unique", NULL, SHALE_UNIQUE_COUNTED, 1 << 20, 1000, &build,
                     &changes));
  FAILS(SHALE_INVALID_ARGUMENT, shale_build_add(build, "k", 1, "\x05x", 2));
  FAILS(SHALE_INVALID_ARGUMENT, shale_build_catch_up(build, &count));
  shale_build_free(build);
  shale_tree_free(changes);
  CHECK(shale_entry_of_row("a", 1, NULL, 0, entry, 2) == 3 && entry[0] == 'a' && entry[1] == 'b');
  CHECK(shale_entry_of_row("\0", 1, "r", 1, entry, 4) == 5 && entry[2] == 'c');
  CHECK(shale_entry_of_row(NULL, 1, "r", 1, entry, 4) == 0);
  CHECK(!shale_error_duplicate(NULL, found, lens));
  shale_tree_free(source);
  OK(shale_tree_drop(db, "source"));
}

// The keys of a round, each one letter.
static void keys_are(shale_round *round, const char *wanted) {
  const void *key = NULL;
  size_t len = 0;
  for (bool first = true; *wanted != 0; first = false, wanted++) {
    OK(shale_round_next(round, first, &key, &len));
    CHECK(len == 1 && *(const char *)key == *wanted);
  }
  OK(shale_round_next(round, false, &key, &len));
  CHECK(key == NULL);
}

static void tracked_changes(shale_db *db) {
  shale_tree *source = NULL, *changed = NULL;
  shale_tracker *tracker = NULL;
  shale_snapshot *before = NULL, *after = NULL;
  shale_round *round = NULL;
  shale_txn *txn = NULL;
  bool watched = false;
  size_t place = 0;
  shale_bytes *existing = NULL;
  OK(shale_tree_open(db, "source", SHALE_TREE_THERE_OR_NEW, NULL, &source));
  OK(shale_put(source, "a", 1, "1", 1, false));
  OK(shale_txn_begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS, 50, &txn));
  OK(shale_txn_put(txn, source, "b", 1, "2", 1));
  FAILS(SHALE_LOCK_TIMEOUT, shale_tree_wait_for_writers(source, 1));
  FAILS(SHALE_LOCK_TIMEOUT, shale_tracker_new(source, "changed", 1, &tracker, &changed, &before));
  OK(shale_txn_commit(txn, false));
  OK(shale_tree_wait_for_writers(source, 0));
  OK(shale_tracker_new(source, "changed", 0, &tracker, &changed, &before));
  CHECK(has(source, before, "b", "2"));
  shale_snapshot_free(before);
  OK(shale_txn_begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS, 50, &txn));
  shale_operation both[] = {{source, SHALE_ACTION_PUT, "b", 1, "3", 1},
                            {changed, SHALE_ACTION_PUT_UNLOCKED, "b", 1, "", 0}};
  OK(shale_txn_apply(txn, both, 2, NULL, &watched, &place, &existing));
  FAILS(SHALE_LOCK_TIMEOUT, shale_tree_wait_for_writers(source, 1));
  OK(shale_txn_commit(txn, false));
  OK(shale_round_begin(tracker, true, &round, &before, &after));
  keys_are(round, "b");
  CHECK(has(source, before, "b", "2") && has(source, after, "b", "3"));
  shale_round_free(round);
  shale_snapshot_free(before);
  shale_snapshot_free(after);
  OK(shale_round_begin(tracker, false, &round, &before, &after));
  keys_are(round, "b");
  keys_are(round, "b");
  OK(shale_round_end(tracker, round));
  shale_snapshot_free(before);
  shale_snapshot_free(after);
  OK(shale_round_begin(tracker, true, &round, &before, &after));
  keys_are(round, "");
  OK(shale_round_end(tracker, round));
  shale_snapshot_free(before);
  shale_snapshot_free(after);
  shale_tracker_free(tracker);
  FAILS(SHALE_NO_SUCH_TREE, shale_put(changed, "d", 1, "4", 1, false));
  shale_tree_free(changed);
  shale_tree_free(source);
  OK(shale_tree_drop(db, "source"));
}

static shale_txn *begin(shale_db *db, shale_isolation isolation, shale_concurrency concurrency) {
  shale_txn *txn = NULL;
  OK(shale_txn_begin(db, isolation, concurrency, 50, &txn));
  return txn;
}

static void note_wait(void *context, uint64_t waiter, uint64_t holder) {
  uint64_t *waits = context;
  if (holder == 0) {
    waits[3] = waiter; /* who has waited */
    return;
  }
  waits[0]++;
  waits[1] = waiter;
  waits[2] = holder;
}

static void transactions(shale_db *db, shale_tree *a) {
  shale_txn *one = begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS);
  shale_txn *two = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS_LATEST);
  shale_txn *three = begin(db, SHALE_SERIALIZABLE, SHALE_OPTIMISTIC);
  shale_bytes *value = NULL;
  shale_scan *scan = NULL;
  shale_locking_scan *locking = NULL;
  const void *key, *data;
  size_t key_len, len, before = 9, between = 9;
  bool found = false;
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_begin(db, 77, SHALE_LOCKS, 0, &two));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_get(one, a, -1, "x", 1, &value));
  CHECK(shale_txn_id(one) < shale_txn_id(two) && shale_txn_id(NULL) == 0);
  OK(shale_txn_begin_statement(one));
  OK(shale_txn_savepoint(one, &before));
  OK(shale_txn_put(one, a, "t1", 2, "1", 1));
  OK(shale_txn_savepoint(one, &between));
  CHECK(before == 0 && between == 1);
  OK(shale_txn_delete(one, a, "x", 1, NULL, 0));
  OK(shale_txn_rollback_to(one, between));
  OK(shale_txn_release(one, between));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_rollback_to(one, between));
  OK(shale_txn_put(one, a, "t2", 2, "2", 1));
  CHECK(has(a, NULL, "t1", NULL));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_get(two, a, SHALE_LOCK_SHARED, "t1", 2, &value));
  OK(shale_txn_get(two, a, SHALE_LOCK_NONE, "t1", 2, &value));
  CHECK(value == NULL);
  OK(shale_txn_get(one, a, SHALE_LOCK_EXCLUSIVE, "x", 1, &value));
  CHECK(are(value, "1"));
  shale_bytes_free(value);
  OK(shale_txn_scan(one, a, false, "t", 1, "u", 1, true, &scan));
  OK(shale_scan_move(scan, SHALE_FIRST, NULL, 0));
  CHECK(at(scan, "t1"));
  OK(shale_scan_move(scan, SHALE_NEXT, NULL, 0));
  CHECK(at(scan, "t2"));
  for (int times = 0; times < 3; times++) {
    OK(shale_txn_scan_again(one, a, scan, NULL, 0, "t2", 2));
    CHECK(shale_scan_key(scan, NULL) == NULL);
    OK(shale_scan_move(scan, SHALE_LAST, NULL, 0));
    CHECK(at(scan, "t1"));
    OK(shale_txn_scan_again(one, a, scan, "t1x", 3, NULL, 0));
    OK(shale_scan_move(scan, SHALE_FIRST, NULL, 0));
    CHECK(at(scan, "t2"));
  }
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_scan_again(one, a, NULL, NULL, 0, NULL, 0));
  shale_scan_free(scan);
  // What is committed since is found, and changes nothing of what plain reads see.
  OK(shale_put(a, "t9", 2, "9", 1, false));
  OK(shale_txn_scan(one, a, true, "t2", 2, "u", 1, true, &scan));
  OK(shale_scan_move(scan, SHALE_FIRST, NULL, 0));
  CHECK(at(scan, "t2"));
  OK(shale_scan_move(scan, SHALE_NEXT, NULL, 0));
  CHECK(at(scan, "t9"));
  shale_scan_free(scan);
  OK(shale_txn_get(one, a, SHALE_LOCK_NONE, "t9", 2, &value));
  CHECK(value == NULL);
  OK(shale_delete(a, "t9", 2, NULL, 0, false));
  FAILS(SHALE_INVALID_ARGUMENT,
        shale_locking_scan_new(one, a, SHALE_LOCK_NONE, NULL, 0, NULL, 0, &locking));
  OK(shale_locking_scan_new(one, a, SHALE_LOCK_EXCLUSIVE, "x", 1, NULL, 0, &locking));
  OK(shale_locking_scan_step(locking, one, false, &found));
  OK(shale_locking_scan_row(locking, &key, &key_len, &data, &len));
  CHECK(found && is(key, key_len, "x") && is(data, len, "1"));
  OK(shale_locking_scan_step(locking, one, false, &found));
  CHECK(!found);
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(two, a, "y", 1, "", 0)); /* the gap is locked */
  shale_txn *four = NULL;
  static uint64_t waits[4]; /* told as long as the database is open */
  FAILS(SHALE_INVALID_ARGUMENT, shale_observe_lock_waits(db, NULL, waits));
  OK(shale_observe_lock_waits(db, note_wait, waits));
  FAILS(SHALE_INVALID_ARGUMENT, shale_observe_lock_waits(db, note_wait, waits));
  OK(shale_txn_begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS_LATEST, 1, &four));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(four, a, "y", 1, "", 0)); /* after a millisecond */
  CHECK(waits[0] > 0 && waits[1] == shale_txn_id(four) && waits[2] == shale_txn_id(one));
  CHECK(waits[3] == shale_txn_id(four));
  OK(shale_txn_set_lock_timeout(four, 0));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(four, a, "y", 1, "", 0));
  CHECK(waits[1] == shale_txn_id(four));
  shale_locking_scan *skipping = NULL;
  OK(shale_locking_scan_new(four, a, SHALE_LOCK_SHARED, "x", 1, NULL, 0, &skipping));
  OK(shale_locking_scan_skip_locked(skipping));
  OK(shale_locking_scan_step(skipping, four, false, &found));
  CHECK(!found); /* `one` has the only row there */
  shale_locking_scan_free(skipping);
  shale_locking_scan *peeking = NULL;
  OK(shale_locking_scan_new(four, a, SHALE_LOCK_SHARED, "x", 1, NULL, 0, &peeking));
  OK(shale_locking_scan_peek_locked(peeking, true));
  CHECK(!shale_locking_scan_is_locked(peeking) && !shale_locking_scan_is_locked(NULL));
  OK(shale_locking_scan_step(peeking, four, false, &found));
  /* The row that `one` has is shown if it was committed, and is not to be had. */
  CHECK(!found || !shale_locking_scan_is_locked(peeking));
  if (found) FAILS(SHALE_LOCK_TIMEOUT, shale_locking_scan_lock_row(peeking, four, &found));
  else OK(shale_locking_scan_lock_row(peeking, four, &found));
  shale_locking_scan_free(peeking);
  shale_txn_rollback(four);
  shale_locking_scan_free(locking);
  shale_interrupt *interrupt = NULL;
  OK(shale_interrupt_new(&interrupt));
  OK(shale_txn_set_interrupt(two, interrupt));
  shale_interrupt_set(interrupt, true);
  shale_interrupt_set(NULL, true);
  OK(shale_txn_get(two, a, SHALE_LOCK_NONE, "t1", 2, &value)); /* waits for nobody */
  OK(shale_txn_set_lock_timeout(two, 20));
  FAILS(SHALE_INTERRUPTED, shale_txn_put(two, a, "x", 1, "", 0)); /* `one` has it */
  OK(shale_txn_set_interrupt(two, NULL));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(two, a, "x", 1, "", 0));
  OK(shale_txn_set_interrupt(two, interrupt));
  FAILS(SHALE_INTERRUPTED, shale_txn_put(two, a, "x", 1, "", 0));
  shale_interrupt_free(interrupt);
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(two, a, "x", 1, "", 0));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_set_interrupt(NULL, NULL));
  OK(shale_txn_delete(three, a, "t", 1, "u", 1));
  OK(shale_txn_get(three, a, SHALE_LOCK_NONE, "x", 1, &value));
  shale_bytes_free(value);
  OK(shale_txn_put(one, a, "x", 1, "1", 1));
  OK(shale_txn_commit(one, true));
  CHECK(has(a, NULL, "t1", "1") && has(a, NULL, "t2", "2"));
  OK(shale_txn_put(two, a, "y", 1, "", 0));
  shale_txn_rollback(two);
  CHECK(has(a, NULL, "y", NULL));
  FAILS(SHALE_CONFLICT, shale_txn_commit(three, false)); /* it has read x */
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_commit(NULL, false));
  shale_txn_rollback(NULL);
  shale_locking_scan_free(NULL);
}

static void inserts(shale_db *db, shale_tree *a) {
  const void *keys[3] = {"i1", "none", "t1"}, *locked[2] = {"m1", "m2"};
  size_t lens[3] = {2, 4, 2}, locked_lens[2] = {2, 2}, i;
  shale_bytes *values[3] = {NULL, NULL, NULL}, *existing = NULL;
  shale_txn *one = begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS_LATEST);
  shale_txn *two = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  bool inserted = false, changed = true, wrote = false;
  OK(shale_txn_set_memory(one, 512u << 20));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_set_memory(one, UINT64_MAX));
  OK(shale_txn_insert(one, a, "i1", 2, "1", 1, SHALE_LOCK_EXCLUSIVE, &inserted, &existing));
  CHECK(inserted && existing == NULL);
  OK(shale_txn_insert(one, a, "i1", 2, "2", 1, SHALE_LOCK_EXCLUSIVE, &inserted, &existing));
  CHECK(!inserted && are(existing, "1"));
  shale_bytes_free(existing);
  OK(shale_txn_insert(one, a, "t1", 2, "2", 1, SHALE_LOCK_EXCLUSIVE, &inserted, NULL));
  CHECK(!inserted);
  FAILS(SHALE_LOCK_TIMEOUT,
        shale_txn_insert(two, a, "i1", 2, "2", 1, SHALE_LOCK_EXCLUSIVE, &inserted, NULL));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(two, a, "t1", 2, "2", 1));
  FAILS(SHALE_INVALID_ARGUMENT,
        shale_txn_insert(two, a, "i1", 2, "2", 1, SHALE_LOCK_SHARED, NULL, NULL));
  FAILS(SHALE_INVALID_ARGUMENT,
        shale_txn_insert(two, a, "i1", 2, "2", 1, SHALE_LOCK_NONE, &inserted, NULL));
  /* What both leave as it is neither keeps from the other. */
  OK(shale_put(a, "i2", 2, "1", 1, false));
  OK(shale_txn_insert(one, a, "i2", 2, "2", 1, SHALE_LOCK_SHARED, &inserted, NULL));
  OK(shale_txn_insert(two, a, "i2", 2, "2", 1, SHALE_LOCK_SHARED, &inserted, &existing));
  CHECK(!inserted && are(existing, "1"));
  shale_bytes_free(existing);
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(one, a, "i2", 2, "2", 1));
  OK(shale_txn_multi_get(one, a, keys, lens, 3, values));
  for (i = 0; i < 3; i++) {
    CHECK((values[i] == NULL) == (i == 1));
    if (i != 1) CHECK(are(values[i], "1"));
    shale_bytes_free(values[i]);
  }
  OK(shale_txn_multi_get(one, a, NULL, NULL, 0, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_multi_get(one, a, keys, NULL, 3, values));
  /* Locked one by one, looked up together. */
  OK(shale_put(a, "m1", 2, "1", 1, false));
  OK(shale_txn_lock(one, a, SHALE_LOCK_SHARED, "m1", 2));
  OK(shale_txn_lock(two, a, SHALE_LOCK_SHARED, "m1", 2));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_lock(two, a, SHALE_LOCK_EXCLUSIVE, "m1", 2));
  OK(shale_txn_lock(one, a, SHALE_LOCK_EXCLUSIVE, "m2", 2)); /* which is not there */
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_lock(two, a, SHALE_LOCK_SHARED, "m2", 2));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_lock(one, a, SHALE_LOCK_NONE, "m1", 2));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_lock(one, a, SHALE_LOCK_SHARED, NULL, 2));
  OK(shale_txn_multi_get_locked(one, a, locked, locked_lens, 2, values));
  CHECK(are(values[0], "1") && values[1] == NULL);
  shale_bytes_free(values[0]);
  OK(shale_txn_multi_get_locked(one, a, NULL, NULL, 0, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_multi_get_locked(one, a, locked, NULL, 2, values));
  OK(shale_txn_put_unlocked(two, a, "i1", 2, "2", 1)); /* though `one` has locked it */
  OK(shale_txn_wrote(two, a, "i1", 2, &wrote, NULL));
  OK(shale_txn_wrote(one, a, "t1", 2, NULL, &changed));
  CHECK(wrote && !changed);
  OK(shale_put(a, "t1", 2, "1", 1, false));
  OK(shale_txn_wrote(two, a, "t1", 2, &wrote, NULL));
  OK(shale_txn_wrote(one, a, "t1", 2, NULL, &changed));
  CHECK(!wrote && changed);
  shale_txn_rollback(one);
  shale_txn_rollback(two);
}

static shale_operation operation(shale_tree *tree, int action, const char *key, const char *value) {
  shale_operation made = {tree, action, key, strlen(key), value, strlen(value)};
  return made;
}

/* A row and its entries in two indexes: all or nothing. */
static void rows(shale_db *db, shale_tree *a, shale_tree *b) {
  shale_txn *one = begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS_LATEST);
  shale_txn *two = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS_LATEST);
  shale_bytes *existing = NULL;
  const void *value = NULL;
  size_t place = 9, len = 9;
  bool changed = false;
  shale_operation row[3];
  row[0] = operation(a, SHALE_ACTION_INSERT_OR_SHARE, "r1", "row");
  row[1] = operation(b, SHALE_ACTION_PUT, "r entry", "");
  row[2] = operation(b, SHALE_ACTION_INSERT, "r unique", "r1");
  OK(shale_txn_apply(one, row, 3, NULL, NULL, &place, &existing));
  CHECK(place == 3 && existing == NULL);
  OK(shale_txn_read(one, a, SHALE_LOCK_NONE, "r1", 2, &value, &len));
  CHECK(len == 3 && memcmp(value, "row", 3) == 0);
  row[0].key = "r2";
  row[1].key = "r entri";
  OK(shale_txn_apply(one, row, 3, a, &changed, &place, &existing));
  CHECK(place == 2 && are(existing, "r1") && !changed);
  shale_bytes_free(existing);
  existing = NULL;
  /* Nothing is left of it, also no lock. */
  OK(shale_txn_read(two, a, SHALE_LOCK_EXCLUSIVE, "r2", 2, &value, &len));
  CHECK(value == NULL && len == 0);
  OK(shale_txn_read(one, b, SHALE_LOCK_NONE, "r entri", 7, &value, &len));
  CHECK(value == NULL);
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_apply(one, row, 3, NULL, NULL, &place, &existing));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_read(two, a, SHALE_LOCK_SHARED, "r1", 2, &value, &len));
  /* The snapshot does not show what is changed now: the entry that stays follows. */
  OK(shale_put(a, "r3", 2, "row", 3, false));
  row[0] = operation(a, SHALE_ACTION_PUT, "r3", "new");
  row[1] = operation(b, SHALE_ACTION_DELETE, "r unique", "");
  row[2] = operation(b, SHALE_ACTION_PUT_IF_CHANGED, "r kept", "r3");
  OK(shale_txn_apply(one, row, 3, a, &changed, &place, &existing));
  CHECK(changed && place == 3);
  OK(shale_txn_read(one, b, SHALE_LOCK_NONE, "r kept", 6, &value, &len));
  CHECK(len == 2);
  row[0] = operation(b, SHALE_ACTION_REQUIRE, "r kept", "");
  row[2] = operation(b, SHALE_ACTION_REQUIRE, "r none", "");
  OK(shale_txn_apply(one, row, 2, NULL, NULL, &place, &existing));
  CHECK(place == 2 && existing == NULL);
  OK(shale_txn_apply(one, row, 3, NULL, NULL, &place, &existing));
  CHECK(place == 2 && existing == NULL);
  row[0] = operation(a, SHALE_ACTION_PUT, "r3", "new");
  OK(shale_txn_apply(one, NULL, 0, NULL, NULL, &place, &existing));
  CHECK(place == 0);
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_apply(one, NULL, 1, NULL, NULL, &place, &existing));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_apply(one, row, 1, a, NULL, &place, &existing));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_apply(one, row, 1, NULL, NULL, NULL, &existing));
  row[0].action = 99;
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_apply(one, row, 1, NULL, NULL, &place, &existing));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_read(one, a, 9, "r1", 2, &value, &len));
  shale_txn_rollback(one);
  shale_txn_rollback(two);
  CHECK(has(a, NULL, "r1", NULL));
  OK(shale_delete(a, "r3", 2, NULL, 0, false));
}

/* Whether a report has this text in it. */
static bool reports(shale_db *db, shale_report_kind kind, const char *wanted) {
  shale_bytes *report = NULL;
  char *text;
  bool found;
  OK(shale_report(db, kind, &report));
  text = calloc(length(report) + 1, 1);
  CHECK(text != NULL);
  memcpy(text, shale_bytes_data(report, NULL), length(report));
  found = strstr(text, wanted) != NULL;
  free(text);
  shale_bytes_free(report);
  return found;
}

static void unlocks(shale_db *db, shale_tree *a) {
  shale_txn *one = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  shale_txn *two = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  shale_bytes *value = NULL, *report = NULL;
  bool unlocked = false;
  OK(shale_txn_get(one, a, SHALE_LOCK_EXCLUSIVE, "u", 1, &value));
  CHECK(value == NULL);
  CHECK(reports(db, SHALE_REPORT_LOCKS, "an exclusive lock on key `u` of tree `a`"));
  CHECK(reports(db, SHALE_REPORT_TRANSACTIONS, "\"isolation\":\"read committed\""));
  CHECK(reports(db, SHALE_REPORT_DEADLOCK, "null"));
  CHECK(reports(db, SHALE_REPORT_TREES, "\"name\":\"a\""));
  OK(shale_flush(db, a));
  CHECK(reports(db, SHALE_REPORT_COMPACTION, "\"write_bytes\":"));
  CHECK(reports(db, SHALE_REPORT_STATS, "{\"") && reports(db, SHALE_REPORT_STATS_TEXT, "\n"));
  FAILS(SHALE_INVALID_ARGUMENT, shale_report(db, 99, &report));
  OK(shale_txn_set_lock_timeout(two, 0));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_get(two, a, SHALE_LOCK_SHARED, "u", 1, &value));
  OK(shale_txn_unlock(one, a, "u", 1, &unlocked));
  CHECK(unlocked);
  OK(shale_txn_put(two, a, "u", 1, "1", 1));
  OK(shale_txn_unlock(two, a, "u", 1, &unlocked));
  CHECK(!unlocked);
  OK(shale_txn_unlock(two, a, "u", 1, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_set_lock_timeout(NULL, 0));
  shale_txn_rollback(one);
  shale_txn_rollback(two);
}

/* What was written to a tree that goes is taken out of the transaction. */
static void forgets(shale_db *db, shale_tree *a) {
  shale_txn *txn = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  shale_tree *scratch = NULL;
  OK(shale_tree_open(db, "scratch", SHALE_TREE_NEW, NULL, &scratch));
  OK(shale_txn_put(txn, a, "forgets", 7, "1", 1));
  OK(shale_txn_put(txn, scratch, "x", 1, "1", 1));
  OK(shale_tree_drop(db, "scratch"));
  OK(shale_txn_forget(txn, scratch));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_forget(txn, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_forget(NULL, scratch));
  shale_tree_free(scratch);
  OK(shale_txn_commit(txn, false));
  CHECK(has(a, NULL, "forgets", "1"));
}

static bool named(shale_prepared *prepared, const char *xid) {
  size_t len = 0;
  const void *data = shale_prepared_xid(prepared, &len);
  return data != NULL && is(data, len, xid);
}

static void prepared(shale_db *db, shale_tree *a) {
  static const char *const names[] = {"order 1", "order 2", "order 3"};
  shale_prepared *some[3] = {NULL, NULL, NULL}, *found = NULL;
  shale_txn *txn;
  size_t i, len = 9;
  bool is_locked = true;
  OK(shale_tree_is_locked(a, &is_locked));
  CHECK(!is_locked);
  for (i = 0; i < 3; i++) {
    txn = begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS);
    OK(shale_txn_put(txn, a, names[i], 7, "1", 1));
    OK(shale_txn_prepare(txn, names[i], 7, i > 0, &some[i]));
    CHECK(has(a, NULL, names[i], NULL));
  }
  CHECK(named(some[1], "order 2"));
  OK(shale_tree_is_locked(a, &is_locked));
  CHECK(is_locked);
  FAILS(SHALE_INVALID_ARGUMENT, shale_tree_is_locked(a, NULL));
  CHECK(shale_prepared_xid(NULL, &len) == NULL && len == 0);
  txn = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(txn, a, "order 2", 7, "2", 1));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_prepare(txn, "order 2", 7, true, &found));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_prepare(NULL, "order 4", 7, true, &found));
  txn = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_prepare(txn, "order 4", 7, true, NULL));
  txn = begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS);
  OK(shale_txn_lock(txn, a, SHALE_LOCK_EXCLUSIVE, "read", 4));
  OK(shale_txn_put(txn, a, "order 4", 7, "1", 1));
  OK(shale_txn_prepare(txn, "order 4", 7, false, &found));
  OK(shale_prepared_release_reads(found));
  txn = begin(db, SHALE_REPEATABLE_READ, SHALE_LOCKS);
  OK(shale_txn_put(txn, a, "read", 4, "2", 1));
  FAILS(SHALE_LOCK_TIMEOUT, shale_txn_put(txn, a, "order 4", 7, "2", 1));
  shale_txn_rollback(txn);
  OK(shale_prepared_decide(found, false, false));
  FAILS(SHALE_INVALID_ARGUMENT, shale_prepared_release_reads(found));
  shale_prepared_free(found);
  OK(shale_prepared_decide(some[0], true, true));
  FAILS(SHALE_INVALID_ARGUMENT, shale_prepared_decide(some[0], true, true));
  CHECK(has(a, NULL, "order 1", "1"));
  OK(shale_prepared_find(db, "order 1", 7, false, &found));
  CHECK(found == NULL);
  OK(shale_prepared_find(db, "order 2", 7, false, &found));
  CHECK(found != NULL);
  OK(shale_prepared_decide(found, false, true));
  FAILS(SHALE_INVALID_ARGUMENT, shale_prepared_decide(some[1], false, false));
  shale_prepared_free(found);
  for (i = 0; i < 3; i++) shale_prepared_free(some[i]);
  shale_prepared_free(NULL);
  CHECK(has(a, NULL, "order 2", NULL) && has(a, NULL, "order 3", NULL));
}

/* After an open anew what is prepared is found, in order, and decided. */
static void recovered(shale_db *db, shale_tree *a) {
  shale_prepared *one = NULL;
  shale_txn *txn = begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS);
  OK(shale_txn_put(txn, a, "order 4", 7, "4", 1));
  OK(shale_txn_prepare(txn, "a", 1, true, &one));
  shale_prepared_free(one);
  OK(shale_prepared_find(db, NULL, 0, true, &one));
  CHECK(named(one, "a"));
  shale_prepared_free(one);
  OK(shale_prepared_find(db, "a", 1, true, &one));
  CHECK(named(one, "order 3"));
  OK(shale_prepared_decide(one, true, false));
  shale_prepared_free(one);
  CHECK(has(a, NULL, "order 3", "1"));
  OK(shale_prepared_find(db, "a", 1, true, &one));
  CHECK(one == NULL);
  OK(shale_prepared_find(db, "Z", 1, true, &one));
  CHECK(named(one, "a"));
  shale_prepared_free(one);
  OK(shale_prepared_find(db, "b", 1, false, &one));
  CHECK(one == NULL);
  OK(shale_prepared_find(db, NULL, 0, false, &one));
  CHECK(one == NULL);
  OK(shale_prepared_find(db, "a", 1, false, &one));
  OK(shale_prepared_decide(one, false, false));
  shale_prepared_free(one);
}

static void whole(shale_db *db, const char *path) {
  shale_bytes *text = NULL;
  shale_db *other = NULL;
  shale_tree *tree = NULL;
  char copy[4096];
  OK(shale_sync(db));
  OK(shale_flush(db, NULL));
  OK(shale_compact(db, NULL, NULL, 0, NULL, 0));
  OK(shale_wait_idle(db));
  OK(shale_set_space_limit(db, 64ull << 30));
  OK(shale_set_space_limit(db, 0));
  OK(shale_verify(db, &text));
  CHECK(((const char *)shale_bytes_data(text, NULL))[0] == '{');
  shale_bytes_free(text);
  OK(shale_verify(db, NULL));
  FAILS(SHALE_LOCKED, shale_open(path, NULL, false, &other));
  snprintf(copy, sizeof copy, "%s.copy", path);
  OK(shale_checkpoint(db, copy));
  OK(shale_open(copy, NULL, true, &other));
  OK(shale_tree_open(other, "a", SHALE_TREE_THERE, NULL, &tree));
  CHECK(has(tree, NULL, "x", "1"));
  FAILS(SHALE_READ_ONLY, shale_put(tree, "x", 1, "2", 1, false));
  OK(shale_close(other));
  FAILS(SHALE_CLOSED, shale_get(tree, NULL, "x", 1, &text));
  shale_tree_free(tree);
}

/* Lengths that nothing has are refused before anything is read. */
static void lengths(shale_db *db, shale_tree *tree) {
  const size_t bogus = (size_t)1 << 40, key = 64 * 1024 + 2;
  shale_batch *batch = NULL;
  shale_txn *txn = NULL;
  shale_scan *scan = NULL;
  shale_ingest *load = NULL;
  shale_bytes *value = NULL;
  uint64_t size;
  const size_t lens[] = {bogus, key, SIZE_MAX};
  OK(shale_batch_new(&batch));
  OK(shale_txn_begin(db, SHALE_READ_COMMITTED, SHALE_LOCKS_LATEST, 0, &txn));
  OK(shale_scan_new(tree, NULL, NULL, 0, NULL, 0, true, &scan));
  OK(shale_ingest_new(tree, &load));
  for (size_t at = 0; at < sizeof lens / sizeof *lens; at++) {
    const size_t len = lens[at];
    shale_scan *other = NULL;
    FAILS(SHALE_INVALID_ARGUMENT, shale_put(tree, "k", len, "v", 1, false));
    FAILS(SHALE_INVALID_ARGUMENT, shale_get(tree, NULL, "k", len, &value));
    FAILS(SHALE_INVALID_ARGUMENT, shale_delete(tree, "k", len, NULL, 0, false));
    FAILS(SHALE_INVALID_ARGUMENT, shale_delete(tree, "k", 1, "l", len, false));
    FAILS(SHALE_INVALID_ARGUMENT, shale_batch_put(batch, tree, "k", len, "v", 1));
    FAILS(SHALE_INVALID_ARGUMENT, shale_batch_delete(batch, tree, "k", len, NULL, 0));
    FAILS(SHALE_INVALID_ARGUMENT, shale_txn_put(txn, tree, "k", len, "v", 1));
    FAILS(SHALE_INVALID_ARGUMENT, shale_ingest_add(load, "k", len, "v", 1));
    FAILS(SHALE_INVALID_ARGUMENT,
          shale_scan_new(tree, NULL, "k", len, NULL, 0, true, &other));
    FAILS(SHALE_INVALID_ARGUMENT,
          shale_scan_new(tree, NULL, NULL, 0, "k", len, true, &other));
    FAILS(SHALE_INVALID_ARGUMENT, shale_scan_move(scan, SHALE_AT_OR_AFTER, "k", len));
    FAILS(SHALE_INVALID_ARGUMENT,
          shale_tree_estimate(tree, "k", len, NULL, 0, 0, NULL, NULL, &size));
  }
  FAILS(SHALE_INVALID_ARGUMENT, shale_put(tree, "k", 1, "v", bogus, false));
  FAILS(SHALE_INVALID_ARGUMENT, shale_batch_put(batch, tree, "k", 1, "v", bogus));
  FAILS(SHALE_INVALID_ARGUMENT, shale_txn_put(txn, tree, "k", 1, "v", bogus));
  FAILS(SHALE_INVALID_ARGUMENT, shale_ingest_add(load, "k", 1, "v", bogus));
  shale_batch_free(batch);
  shale_txn_rollback(txn);
  shale_scan_free(scan);
  shale_ingest_free(load);
}

/* What is left of a database that has been closed says so. */
static void after_close(const char *path) {
  shale_db *db = NULL;
  shale_tree *tree = NULL;
  shale_scan *scan = NULL;
  shale_reader *reader = NULL;
  const void *key = NULL, *value = NULL;
  size_t key_len, value_len, count;
  char copy[4096], room[8];
  snprintf(copy, sizeof copy, "%s.closed", path);
  OK(shale_open(copy, NULL, false, &db));
  OK(shale_tree_open(db, "t", SHALE_TREE_THERE_OR_NEW, NULL, &tree));
  put(tree, "a", "1");
  put(tree, "b", "2");
  OK(shale_scan_new(tree, NULL, NULL, 0, NULL, 0, true, &scan));
  OK(shale_scan_move(scan, SHALE_FIRST, NULL, 0));
  OK(shale_reader_open(tree, "a", 1, &reader, NULL));
  OK(shale_close(db));
  for (int how = SHALE_FIRST; how <= SHALE_PREV; how++) {
    FAILS(SHALE_CLOSED, shale_scan_step(scan, how, &key, &key_len, &value, &value_len));
    FAILS(SHALE_CLOSED, shale_scan_move(scan, how, NULL, 0));
  }
  FAILS(SHALE_CLOSED, shale_scan_move(scan, SHALE_AT_OR_AFTER, "a", 1));
  FAILS(SHALE_CLOSED, shale_scan_move(scan, SHALE_AT_OR_BEFORE, "a", 1));
  CHECK(shale_scan_key(scan, NULL) == NULL);
  FAILS(SHALE_CLOSED, shale_reader_read(reader, room, sizeof room, &count));
  shale_scan_free(scan);
  shale_reader_free(reader);
  shale_tree_free(tree);
}

/* A forked child is refused, and changes nothing of its parent's. */
static void forked(shale_db *db, shale_tree *tree, shale_batch *batch) {
  int status = -1;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    FAILS(SHALE_FORKED, shale_put(tree, "child", 5, "1", 1, false));
    FAILS(SHALE_FORKED, shale_write(db, batch, true));
    FAILS(SHALE_FORKED, shale_sync(db));
    FAILS(SHALE_FORKED, shale_flush(db, NULL));
    CHECK(has(tree, NULL, "child", NULL));
    shale_tree_free(tree);
    FAILS(SHALE_FORKED, shale_close(db));
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  put(tree, "parent", "1");
  OK(shale_sync(db));
  CHECK(has(tree, NULL, "child", NULL) && has(tree, NULL, "parent", "1"));
}

static void followers(shale_db *db, shale_tree *a, const char *path) {
  shale_db *follower = NULL;
  shale_tree *tree = NULL;
  uint64_t before = 0, after = 0;
  FAILS(SHALE_NO_DATABASE, shale_open_follower("nowhere.db", NULL, &follower));
  OK(shale_open_follower(path, NULL, &follower));
  OK(shale_tree_open(follower, "a", SHALE_TREE_THERE, NULL, &tree));
  CHECK(has(tree, NULL, "x", "1"));
  OK(shale_follower_refresh(follower, &before));
  OK(shale_put(a, "followed", 8, "1", 1, false));
  CHECK(has(tree, NULL, "followed", NULL));
  OK(shale_follower_refresh(follower, &after));
  CHECK(after > before);
  CHECK(has(tree, NULL, "followed", "1"));
  FAILS(SHALE_READ_ONLY, shale_put(tree, "x", 1, "2", 1, false));
  OK(shale_delete(a, "followed", 8, NULL, 0, false));
  OK(shale_follower_refresh(follower, NULL));
  CHECK(has(tree, NULL, "followed", NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_follower_refresh(db, NULL));
  OK(shale_close(follower));
  shale_tree_free(tree);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "smoke.db";
  shale_config *config = NULL;
  shale_config *tree_config = NULL;
  shale_db *db = NULL;
  shale_tree *a = NULL, *b = NULL;
  CHECK(strlen(shale_version()) >= 5);
  CHECK(strcmp(shale_error_text(NULL), "") == 0);
  settings(&config, &tree_config);
  OK(shale_config_set(config, "create", "false"));
  FAILS(SHALE_NO_DATABASE, shale_open(path, config, false, &db));
  OK(shale_config_set(config, "create", "true"));
  FAILS(SHALE_INVALID_ARGUMENT, shale_open(path, config, false, NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_open(NULL, config, false, &db));
  OK(shale_open(path, config, false, &db));
  trees(db, tree_config, &a, &b);
  reads_and_writes(db, a);
  batches(db, a, b);
  scans(b);
  large_values(a);
  transactions(db, a);
  inserts(db, a);
  rows(db, a, b);
  unlocks(db, a);
  forgets(db, a);
  prepared(db, a);
  loads(db);
  builds(db);
  unique_builds(db);
  tracked_changes(db);
  lengths(db, a);
  after_close(path);
  {
    shale_batch *batch = NULL;
    OK(shale_batch_new(&batch));
    OK(shale_batch_put(batch, a, "child", 5, "1", 1));
    forked(db, a, batch);
    shale_batch_free(batch);
  }
  whole(db, path);
  followers(db, a, path);
  OK(shale_close(db));
  OK(shale_close(NULL));
  FAILS(SHALE_INVALID_ARGUMENT, shale_ingest_finish(NULL, NULL));
  shale_tree_free(a);
  shale_tree_free(b);
  OK(shale_open(path, NULL, false, &db));
  OK(shale_tree_open(db, "a", SHALE_TREE_THERE, NULL, &a));
  CHECK(has(a, NULL, "x", "1"));
  recovered(db, a);
  shale_tree_free(a);
  OK(shale_close(db));
  shale_config_free(config);
  shale_config_free(tree_config);
  shale_bytes_free(NULL);
  shale_reader_free(NULL);
  shale_error_free(NULL);
  puts("all calls are as they should be");
  return 0;
}
