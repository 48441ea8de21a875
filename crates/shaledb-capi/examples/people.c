/* Keeps people by name, and prints them in order. */
#include <shale.h>
#include <stdio.h>
#include <string.h>

static int failed(shale_error *error) {
  if (error == NULL) return 0;
  fprintf(stderr, "people: %s\n", shale_error_text(error));
  shale_error_free(error);
  return 1;
}

static int put(shale_batch *batch, shale_tree *tree, const char *key, const char *value) {
  return failed(shale_batch_put(batch, tree, key, strlen(key), value, strlen(value)));
}

static int print_all(shale_tree *tree) {
  shale_scan *scan = NULL;
  int bad = failed(shale_scan_new(tree, NULL, NULL, 0, NULL, 0, true, &scan));
  if (!bad) bad = failed(shale_scan_move(scan, SHALE_FIRST, NULL, 0));
  const void *value, *key;
  size_t key_len, value_len;
  while (!bad && (key = shale_scan_key(scan, &key_len)) != NULL) {
    bad = failed(shale_scan_value(scan, &value, &value_len));
    if (bad) break;
    printf("%.*s %.*s\n", (int)key_len, (const char *)key, (int)value_len, (const char *)value);
    bad = failed(shale_scan_move(scan, SHALE_NEXT, NULL, 0));
  }
  shale_scan_free(scan);
  return bad;
}

int main(int argc, char **argv) {
  shale_db *db = NULL;
  shale_tree *people = NULL;
  shale_batch *batch = NULL;
  int bad = failed(shale_open(argc > 1 ? argv[1] : "people.db", NULL, false, &db)) ||
            failed(shale_tree_open(db, "people", SHALE_TREE_THERE_OR_NEW, NULL, &people)) ||
            failed(shale_batch_new(&batch)) || put(batch, people, "ada", "1815") ||
            put(batch, people, "grace", "1906") ||
            failed(shale_write(db, batch, true)) || /* all or nothing, durable on return */
            print_all(people);
  shale_batch_free(batch);
  shale_tree_free(people);
  if (db != NULL && failed(shale_close(db))) bad = 1;
  return bad;
}
