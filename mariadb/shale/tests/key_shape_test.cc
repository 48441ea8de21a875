// What definitions say of indexes: InnoDB's answers of foreign_key_types.txt are the measure of
// kinds and forms, with tables of all these types in the server's embedded library; damage; round
// trips.

#include "server.h"

#include "codec/index_defs.h"
#include "codec/key_part.h"
#include "codec/key_shape.h"
#include "codec/row_shape.h"
#include "codec/table_bytes.h"
#include "embedded.h"

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

namespace shale_sql {
namespace {

Chance chance;

// The ways in which one column is in an index.
constexpr const char *kIndexes = "key (x), key (x desc), key (y), key (y desc)";
constexpr unsigned kShapes = 4;

struct Shape {
  std::vector<PartDef> parts;
  std::vector<std::string> keys;  // of the values
};

struct Type {
  size_t kind;  // the same number: InnoDB takes a foreign key from one to the other
  std::string name;
  std::vector<std::string> values;
  Shape shapes[kShapes];
};

std::vector<Type> types;
// Of a child's type and a parent's, which of the child's values have a parent.
std::map<std::pair<size_t, size_t>, std::set<size_t>> found;

void read_answers(const char *path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "type") {
      types.emplace_back();
      words >> types.back().kind >> std::ws;
      std::getline(words, types.back().name);
    } else if (word == "value") {
      types.back().values.push_back(line.substr(6));
    } else {
      size_t child, parent;
      words >> child >> parent;
      for (size_t value; words >> value;) found[{child, parent}].insert(value);
    }
  }
  CHECK(types.size() > 100 && found.size() > 400);
}

// Makes a table of the type with its values, and packs them into the keys of its indexes.
void learn(Embedded *server, Type *type) {
  server->run("create table t (x " + type->name + ", y " + type->name + " not null, " +
              kIndexes + ")");
  for (const std::string &value : type->values) {
    server->run("insert into t values (" + value + ", " + value + ")");
  }
  TABLE *table = server->open("t");
  for (unsigned index = 0; index < kShapes; index++) {
    type->shapes[index].parts = parts_of(table, index);
  }
  for (size_t row = 0; row < type->values.size(); row++) {
    CHECK(table->file->ha_rnd_next(table->record[0]) == 0);
    for (unsigned index = 0; index < kShapes; index++) {
      std::string key;
      KeyPart(table, table->key_info[index].key_part[0]).pack(table->record[0], &key);
      type->shapes[index].keys.push_back(key);
    }
  }
  server->close(table);
  server->run("drop table t");
}

bool has(const std::string &text, const char *word) { return text.find(word) != text.npos; }

// A CHAR's form has no spaces at its end, or all of them, and a VARCHAR's those that it has: what
// InnoDB finds depends on which of both is the child, and it crashes of some.
bool is_mixed_nopad(const Type &child, const Type &parent) {
  return has(child.name, "nopad") && has(child.name, "varchar") != has(parent.name, "varchar");
}

std::string pair_of(const Type &child, const Type &parent) {
  return child.name.substr(0, 60) + " references " + parent.name.substr(0, 60);
}

std::string translated(const std::string &key, const Shape &from, const Shape &to) {
  std::string out;
  const Translated how = translate_key(key, from.parts, to.parts, 1, &out);
  CHECK(how != Translated::kDamaged);
  return how == Translated::kKey ? out : "";
}

// Which of the child's values are keys of the parent's, by their keys alone.
std::set<size_t> found_by_keys(const Shape &child, const Shape &parent) {
  std::set<size_t> values;
  for (size_t value = 0; value < child.keys.size(); value++) {
    const std::string key = translated(child.keys[value], child, parent);
    for (const std::string &other : parent.keys) {
      if (key != other) continue;
      values.insert(value);
      // Who removes the parent finds this child.
      CHECK(translated(other, parent, child) == child.keys[value]);
    }
  }
  return values;
}

void show(const char *who, const Type &child, const std::set<size_t> &values) {
  fprintf(stderr, "  %s:", who);
  for (size_t value : values) fprintf(stderr, " %s", child.values[value].c_str());
  fprintf(stderr, "\n");
}

bool as_innodb(size_t c, size_t p, unsigned from, unsigned to) {
  const Type &child = types[c], &parent = types[p];
  const bool accepted = child.kind == parent.kind;
  const Shape &of_child = child.shapes[from], &of_parent = parent.shapes[to];
  if (may_reference(of_child.parts[0], of_parent.parts[0]) != accepted) {
    fprintf(stderr, "%s: InnoDB %s that\n", pair_of(child, parent).c_str(),
            accepted ? "accepts" : "refuses");
    return false;
  }
  if (!accepted) return true;
  const std::set<size_t> values = found_by_keys(of_child, of_parent);
  if (values == found[{c, p}] || is_mixed_nopad(child, parent)) return true;
  fprintf(stderr, "%s, shapes %u and %u:\n", pair_of(child, parent).c_str(), from, to);
  show("by keys", child, values);
  show("by InnoDB", child, found[{c, p}]);
  return false;
}

void compare_with_innodb() {
  size_t wrong = 0;
  for (size_t c = 0; c < types.size(); c++) {
    for (size_t p = 0; p < types.size(); p++) {
      for (unsigned shape = 0; shape < kShapes * kShapes; shape++) {
        if (as_innodb(c, p, shape / kShapes, shape % kShapes)) continue;
        wrong++;
        break;
      }
    }
  }
  CHECK(wrong == 0);
}

// The value of a literal has one key in parts of one form, and another in parts of another. Of the
// types that InnoDB compares as bytes the value is those bytes, which compare_with_innodb sees.
void compare_forms() {
  size_t same = 0, different = 0;
  for (const Type &a : types) {
    for (const Type &b : types) {
      const PartDef &one = a.shapes[2].parts[0], &other = b.shapes[2].parts[0];
      if (a.kind != b.kind || a.values != b.values || one.kind == "b") continue;
      const bool same_form = one.form == other.form;
      CHECK(same_form == (a.shapes[2].keys == b.shapes[2].keys));
      (same_form ? same : different)++;
    }
  }
  CHECK(same > 100 && different > 10);
}

// What of NOPAD collations is found between CHAR and VARCHAR: the value, not InnoDB's padded one.
void mixed_nopad() {
  size_t seen = 0;
  for (size_t c = 0; c < types.size(); c++) {
    for (size_t p = 0; p < types.size(); p++) {
      const Type &child = types[c], &parent = types[p];
      if (child.kind != parent.kind || !is_mixed_nopad(child, parent)) continue;
      const std::set<size_t> values = found_by_keys(child.shapes[0], parent.shapes[0]);
      const bool is_char = !has(child.name, "varchar");
      std::set<std::string> texts;
      for (size_t value : values) texts.insert(child.values[value]);
      seen++;
      if (has(child.name, "latin1")) {
        CHECK(texts.count("'a'") == 1 && texts.count("'abc'") == 1 && texts.count("'ab '") == 0);
        CHECK(texts.count("'a '") == (is_char ? 1 : 0));
      } else {
        // Only what fills the CHAR.
        const bool three = (is_char ? child : parent).name.compare(0, 7, "char(3)") == 0;
        CHECK(texts.count("'a'") == 0 && texts.count("'abc'") == (three ? 1 : 0));
      }
    }
  }
  CHECK(seen == 24);
}

const Shape &some_shape() {
  return types[chance.below(types.size())].shapes[chance.below(kShapes)];
}

// In a buffer of their own, so that ASan sees its end.
struct Copy {
  explicit Copy(const std::string &key, size_t n) : bytes(new char[n]), size(n) {
    memcpy(bytes.get(), key.data(), n);
  }
  std::string_view view() const { return {bytes.get(), size}; }
  std::unique_ptr<char[]> bytes;
  size_t size;
};

// An index of some columns, and a key of it. Some columns are NULL.
struct Row {
  std::vector<PartDef> parts;
  std::string key;
  std::vector<size_t> ends;
  size_t first_null = SIZE_MAX;
};

Row some_row(size_t columns) {
  Row row;
  for (size_t i = 0; i < columns; i++) {
    const Shape &shape = some_shape();
    const PartDef &part = shape.parts[0];
    row.parts.push_back(part);
    if (part.nullable && chance.one_in(4)) {
      row.key += part.descending ? '\xff' : '\0';
      row.first_null = std::min(row.first_null, i);
    } else {
      row.key += shape.keys[chance.below(shape.keys.size())];
    }
    row.ends.push_back(row.key.size());
  }
  return row;
}

// The other index has the same columns, with or without NULL and DESC.
std::vector<PartDef> reshaped(std::vector<PartDef> parts) {
  for (PartDef &part : parts) {
    part.nullable = part.nullable || chance.one_in(2);
    part.descending = chance.one_in(2);
  }
  return parts;
}

void rows_of_columns() {
  for (unsigned round = 0; round < 20000; round++) {
    const size_t columns = 1 + chance.below(4), count = chance.below(columns + 1);
    const Row row = some_row(columns);
    const std::string entry = row.key + "primary key";
    size_t end = 0;
    bool damaged = true;
    CHECK(columns_end(entry, row.parts, count, &end));
    CHECK(end == (count == 0 ? 0 : row.ends[count - 1]));
    CHECK(has_null(entry, row.parts, count, &damaged) == (row.first_null < count) && !damaged);
    std::string key, back;
    const std::vector<PartDef> others = reshaped(row.parts);
    CHECK(translate_key(entry, row.parts, others, count, &key) == Translated::kKey);
    CHECK(translate_key(key, others, row.parts, count, &back) == Translated::kKey);
    CHECK(back == row.key.substr(0, end));
    CHECK(same_forms(row.parts, row.parts, count));
    CHECK(!same_forms(row.parts, others, columns + 1));
    std::vector<PartDef> alike = row.parts;
    for (PartDef &part : alike) part.nullable = chance.one_in(2);
    CHECK(same_forms(row.parts, alike, count));
    const bool some_null = row.first_null < count;
    std::string copied = "of before";
    CHECK(copy_columns(entry, row.parts, alike, count, &copied) ==
          (some_null ? Translated::kNoMatch : Translated::kKey));
    if (!some_null) {
      CHECK(translate_key(entry, row.parts, alike, count, &key) == Translated::kKey);
      CHECK(copied == key);
    }
    // NULL is in no column that has none.
    std::vector<PartDef> without = others;
    for (PartDef &part : without) part.nullable = false;
    const bool null = row.first_null < count;
    CHECK(translate_key(entry, row.parts, without, count, &key) ==
          (null ? Translated::kNoMatch : Translated::kKey));
    CHECK(translate_key(entry, row.parts, others, columns + 1, &key) == Translated::kDamaged);
  }
}

void damage() {
  for (unsigned round = 0; round < 20000; round++) {
    const size_t columns = 1 + chance.below(3);
    const Row row = some_row(columns);
    const std::vector<PartDef> to = reshaped(row.parts);
    std::string key = row.key, out;
    size_t end = 0;
    bool damaged = false;
    // Cut: no form is the beginning of another.
    const Copy cut(key, chance.below(key.size()));
    CHECK(translate_key(cut.view(), row.parts, to, columns, &out) == Translated::kDamaged);
    CHECK(!columns_end(cut.view(), row.parts, columns, &end));
    CHECK(copy_columns(cut.view(), row.parts, row.parts, columns, &out) != Translated::kKey);
    if (!has_null(cut.view(), row.parts, columns, &damaged)) CHECK(damaged);
    // Changed: whatever comes out, nothing is read outside of the key.
    for (uint64_t n = 1 + chance.below(4); n > 0; n--) {
      key[chance.below(key.size())] = static_cast<char>(chance.next());
    }
    const Copy changed(key, key.size());
    if (columns_end(changed.view(), row.parts, columns, &end)) CHECK(end <= key.size());
    has_null(changed.view(), row.parts, columns, &damaged);
    copy_columns(changed.view(), row.parts, row.parts, columns, &out);
    translate_key(changed.view(), row.parts, to, columns, &out);
    // The definition is damaged, or of other columns.
    std::vector<PartDef> wrong = some_row(columns).parts;
    std::string &form = wrong[0].form;
    form[chance.below(form.size())] = static_cast<char>(chance.next());
    if (chance.one_in(2)) form.resize(chance.below(form.size()));
    translate_key(changed.view(), row.parts, wrong, columns, &out);
    translate_key(changed.view(), wrong, row.parts, columns, &out);
  }
}

TableDef some_definition() {
  TableDef def;
  def.table_id = chance.next();
  def.forms.resize(1 + chance.below(2));
  for (auto &form : def.forms) form.resize(chance.below(3), ColumnDef{3, true, 4, false});
  if (chance.one_in(2)) def.defaults.push_back({9, false, "value"});
  def.version = "version";
  if (chance.one_in(2)) def.row_end = {"row_end", static_cast<uint32_t>(chance.below(300))};
  for (uint64_t n = 1 + chance.below(3); n > 0; n--) {
    def.indexes.push_back({def.next_index_id++, "name", chance.one_in(2), {}});
    if (!chance.one_in(3)) def.indexes.back().parts = some_row(1 + chance.below(3)).parts;
  }
  return def;
}

void definitions() {
  for (unsigned round = 0; round < 5000; round++) {
    const TableDef def = some_definition();
    std::string bytes = bytes_of(def);
    TableDef back, other;
    CHECK(parse(bytes, &back) && bytes_of(back) == bytes);
    CHECK(back.row_end.column == def.row_end.column);
    CHECK(back.row_end.column_id == def.row_end.column_id);
    for (size_t i = 0; i < def.indexes.size(); i++) {
      CHECK(back.indexes[i].parts == def.indexes[i].parts);
      CHECK(back.indexes[i].unique == def.indexes[i].unique);
    }
    const Copy cut(bytes, chance.below(bytes.size()));
    CHECK(!parse(cut.view(), &other));
    bytes[chance.below(bytes.size())] = static_cast<char>(chance.next());
    const Copy changed(bytes, bytes.size());
    TableDef third;
    parse(changed.view(), &third);
  }
}

// Of formats 4 and 5: words, and a list of stop words of a table.
void words() {
  TableDef def = some_definition(), back;
  def.indexes.back().has_words = true;
  def.indexes.back().words.stopwords = false;
  CHECK(bytes_of(def)[0] == 4 && parse(bytes_of(def), &back));
  CHECK(back.indexes.back().words == def.indexes.back().words);
  WordRules &rules = def.indexes.back().words;
  rules.stopwords = true;
  rules.stopword_collation = 45;
  rules.own_stopwords = {"", "row", "this"};
  const std::string bytes = bytes_of(def);
  CHECK(bytes[0] == 5 && parse(bytes, &back));
  CHECK(back.indexes.back().words == rules && !(back.indexes.back().words == WordRules()));
  for (size_t size = 0; size < bytes.size(); size++) {
    const Copy cut(bytes, size);
    CHECK(!parse(cut.view(), &back));
  }
}

// Of format 2, which knew of no row end.
void format_2() {
  TableDef def = some_definition(), back;
  def.row_end = RowEnd();
  std::string bytes = bytes_of(def);
  bytes[0] = 2;
  bytes.resize(bytes.size() - 2);
  CHECK(parse(bytes, &back) && back.row_end.column.empty());
  CHECK(back.indexes.size() == def.indexes.size());
}

// A column of a row by the definition alone, whole and damaged.
void columns_of_rows() {
  TableDef def;
  def.forms = {{{0, false, 4, true}, {1, true, 2, false}, {2, false, 0, false}},
               {{0, false, 4, true}, {2, true, 0, false}, {7, false, 3, false}}};
  const std::string first("\0\0ab\3xyz", 8), none("\0\1\3xyz", 6);
  const std::string second("\1\0\1qend", 7), null("\1\1end", 5);
  std::string_view bytes;
  CHECK(column_of_row(first, def, 1, &bytes) && bytes == "ab");
  CHECK(column_of_row(first, def, 2, &bytes) && bytes == "xyz");
  CHECK(!column_of_row(none, def, 1, &bytes));
  CHECK(column_of_row(none, def, 2, &bytes) && bytes == "xyz");
  CHECK(column_of_row(second, def, 7, &bytes) && bytes == "end");
  CHECK(column_of_row(second, def, 2, &bytes) && bytes == "q");
  CHECK(!column_of_row(null, def, 2, &bytes));
  CHECK(column_of_row(null, def, 7, &bytes) && bytes == "end");
  // Of the key, of another form, or of none.
  CHECK(!column_of_row(first, def, 0, &bytes) && !column_of_row(first, def, 7, &bytes));
  CHECK(!column_of_row("\2", def, 1, &bytes) && !column_of_row("", def, 1, &bytes));
  for (const std::string &row : {first, none, second, null}) {
    for (size_t size = 0; size < row.size(); size++) {
      const Copy cut(row, size);
      CHECK(!column_of_row(cut.view(), def, row[0] == 0 ? 2 : 7, &bytes));
    }
    for (unsigned round = 0; round < 1000; round++) {
      std::string changed = row;
      changed[chance.below(changed.size())] = static_cast<char>(chance.next());
      const Copy whole(changed, changed.size());
      column_of_row(whole.view(), def, static_cast<uint32_t>(chance.below(9)), &bytes);
    }
  }
}

// A definition as releases before 0.2 wrote it: `create table t (id int primary key, key k (id))`.
void format_1() {
  const std::string_view bytes("\1\7\0\1\2\0\3abc\1\1\0\2\4\0\2\0\7PRIMARY\1\1k", 29);
  TableDef def;
  CHECK(parse(bytes, &def));
  CHECK(def.table_id == 7 && !def.hidden_key && def.version == "abc" && def.next_index_id == 2);
  CHECK(def.forms.size() == 1 && def.forms[0].size() == 1 && def.forms[0][0].in_key);
  CHECK(def.indexes.size() == 2 && def.indexes[0].name == "PRIMARY" && def.indexes[1].id == 1);
  CHECK(def.indexes[0].parts.empty() && def.indexes[1].parts.empty());
  TableDef later;
  CHECK(!parse("\3" + std::string(bytes.substr(1)), &later));
  CHECK(!parse("\4" + std::string(bytes.substr(1)), &later));
}

// What a table says of its indexes completes such a definition.
void of_table(Embedded *server) {
  server->run("create table t (a int, B varchar(9), c char(4) not null, key k (B(3), a),"
              " unique U (a desc, c), primary key (c))");
  TABLE *table = server->open("t");
  TableDef def;
  def.indexes = {{0, "PRIMARY", false, {}}, {1, "u", false, {}}, {2, "K", false, {}}};
  CHECK(has_indexes_of(def, table));
  describe_indexes(table, &def);
  const auto &primary = def.indexes[0], &unique = def.indexes[1], &other = def.indexes[2];
  CHECK(primary.unique && primary.parts.size() == 1 && primary.parts[0].column == "c");
  CHECK(!primary.parts[0].nullable && primary.parts[0].whole && primary.parts[0].fixed_bytes == 0);
  CHECK(unique.unique && unique.parts.size() == 2 && unique.parts[0].column == "a");
  CHECK(unique.parts[0].nullable && unique.parts[0].descending && unique.parts[0].whole);
  CHECK(unique.parts[0].fixed_bytes == 4 && unique.parts[1].column == "c");
  CHECK(!other.unique && other.parts.size() == 2 && other.parts[0].column == "B");
  CHECK(!other.parts[0].whole && other.parts[1].whole && !other.parts[1].descending);
  CHECK(!may_reference(other.parts[0], other.parts[0]));
  CHECK(may_reference(other.parts[1], unique.parts[0]));
  CHECK(index_of(def, table, table->s->primary_key) == &def.indexes[0]);
  server->close(table);
  server->run("drop table t");
  CHECK(def.row_end.column.empty());
  server->run("create table t (a int, v int as (a) virtual, b int) with system versioning");
  table = server->open("t");
  TableDef versioned;
  versioned.hidden_key = true;
  versioned.indexes = {{0, "", true, {}}};
  versioned.forms = {{{0, true, 4, false}, {5, true, 4, false}, {6, false, 7, false},
                      {9, false, 7, false}}};
  describe_indexes(table, &versioned);
  CHECK(versioned.row_end.column == "row_end" && versioned.row_end.column_id == 9);
  server->close(table);
  server->run("drop table t");
}

}  // namespace
}  // namespace shale_sql

int main(int, char **arguments) {
  using namespace shale_sql;
  read_answers(arguments[1]);
  Embedded server(arguments[2], arguments[3]);
  for (Type &type : types) learn(&server, &type);
  compare_with_innodb();
  compare_forms();
  mixed_nopad();
  rows_of_columns();
  damage();
  definitions();
  format_1();
  format_2();
  words();
  columns_of_rows();
  of_table(&server);
  printf("key_shape: ok\n");
}
