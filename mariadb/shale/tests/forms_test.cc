// The forms of numbers and strings in keys, and what reads bytes: order, bounds, damage.

#include "check.h"
#include "codec/bytes.h"
#include "codec/number_form.h"
#include "codec/text_form.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace shale_sql {
namespace {

Chance chance;

// Numbers of n bytes, many of them at an edge.
uint64_t some_integer(unsigned n) {
  const uint64_t edges[] = {0, 1, 0x7f, 0x80, 0xff, sign_bit(n) - 1, sign_bit(n), sign_bit(n) + 1,
                            ~uint64_t{0}, ~uint64_t{0} - 1};
  uint64_t value = chance.one_in(2) ? edges[chance.below(10)] : chance.next() >> chance.below(64);
  return n == 8 ? value : value & ((uint64_t{1} << (8 * n)) - 1);
}

int64_t as_signed(uint64_t value, unsigned n) {
  return static_cast<int64_t>(value << (64 - 8 * n)) >> (64 - 8 * n);
}

void integers() {
  for (unsigned round = 0; round < 40000; round++) {
    const unsigned n = 1 + static_cast<unsigned>(chance.below(8));
    const bool is_signed = chance.one_in(2), descending = chance.one_in(2);
    const uint64_t turn = (is_signed ? sign_bit(n) : 0) ^ (descending ? ~uint64_t{0} : 0);
    const uint64_t a = some_integer(n), b = chance.one_in(8) ? a : some_integer(n);
    std::vector<uchar> first(n), second(n), back(n);  // so that ASan sees their ends
    store_low_first(a, first.data(), n);
    store_low_first(b, second.data(), n);
    CHECK(load_low_first(first.data(), n) == a);
    std::string key_a, key_b;
    append_integer(&key_a, first.data(), n, turn);
    append_integer(&key_b, second.data(), n, turn);
    CHECK(key_a.size() == n);
    int order = (a > b) - (a < b);
    if (is_signed) {
      order = (as_signed(a, n) > as_signed(b, n)) - (as_signed(a, n) < as_signed(b, n));
    }
    CHECK(sign(key_a.compare(key_b)) == (descending ? -order : order));
    restore_integer(bytes_of(key_a), back.data(), n, turn);
    CHECK(back == first);
  }
}

template <class Real>
void reals() {
  const unsigned n = sizeof(Real);
  const Real edges[] = {0, Real(-0.0), 1, -1, std::numeric_limits<Real>::min(),
                        std::numeric_limits<Real>::denorm_min(), std::numeric_limits<Real>::max(),
                        -std::numeric_limits<Real>::max(), -std::numeric_limits<Real>::denorm_min(),
                        std::numeric_limits<Real>::infinity()};
  for (unsigned round = 0; round < 40000; round++) {
    Real values[2];
    for (Real &value : values) {
      if (chance.one_in(2)) {
        value = edges[chance.below(10)];
      } else {
        const uint64_t bits = chance.next();
        memcpy(&value, &bits, n);
        if (std::isnan(value)) value = 0;
      }
    }
    const bool descending = chance.one_in(2);
    const uint64_t turn = descending ? ~uint64_t{0} : 0;
    const uchar *first = reinterpret_cast<const uchar *>(&values[0]);
    std::string key_a, key_b;
    append_real(&key_a, first, n, turn);
    append_real(&key_b, reinterpret_cast<const uchar *>(&values[1]), n, turn);
    const int order = (values[0] > values[1]) - (values[0] < values[1]);
    CHECK(sign(key_a.compare(key_b)) == (descending ? -order : order));
    Real back;
    restore_real(bytes_of(key_a), reinterpret_cast<uchar *>(&back), n, turn);
    CHECK(back == values[0] && !(std::signbit(back) && back == 0));
    CHECK(is_negative_zero(first, n) == (values[0] == 0 && std::signbit(values[0])));
  }
}

// As strings of units that go on in pads without end.
int padded_order(const std::string &a, const std::string &b, const Pad &pad) {
  const std::string unit(reinterpret_cast<const char *>(pad.bytes), pad.size);
  std::string first = a, second = b;
  while (first.size() < second.size()) first += unit;
  while (second.size() < first.size()) second += unit;
  return sign(first.compare(second));
}

std::string units(unsigned size) {
  std::string text;
  for (uint64_t n = chance.below(6) * size; n > 0; n--) {
    const char few[] = {'\0', '\1', '\2', '\3', ' ', ' ', '!', '\x1f', '\xff', 'a'};
    text += few[chance.below(sizeof(few))];
  }
  return text;
}

void texts() {
  const Pad pads[] = {{{' '}, 1}, {{0, ' '}, 2}, {{2, 9}, 2}, {{0, 0, ' '}, 3}, {{0, 0, 0, ' '}, 4},
                      {{0}, 1}, {{0xff}, 1}};
  for (unsigned round = 0; round < 200000; round++) {
    const Pad &pad = pads[chance.below(7)];
    std::string a = units(pad.size), b = chance.one_in(3) ? a : units(pad.size);
    const std::string unit(reinterpret_cast<const char *>(pad.bytes), pad.size);
    if (chance.one_in(2)) b += unit;
    if (chance.one_in(3)) b += unit + units(pad.size);
    const uchar mask = chance.one_in(2) ? 0xff : 0;
    const bool padded = chance.one_in(2);
    std::string key_a, key_b;
    if (padded) {
      append_padded(&key_a, bytes_of(a), a.size(), pad);
      append_padded(&key_b, bytes_of(b), b.size(), pad);
      CHECK(key_a.size() <= max_padded(a.size(), pad));
    } else {
      append_plain(&key_a, bytes_of(a), a.size());
      append_plain(&key_b, bytes_of(b), b.size());
      CHECK(key_a.size() <= max_plain(a.size()));
    }
    const int order = padded ? padded_order(a, b, pad) : sign(a.compare(b));
    CHECK(sign(key_a.compare(key_b)) == order);
    if (order != 0) CHECK(key_a.compare(0, key_b.size(), key_b) != 0);
    if (mask) turn_bits(&key_a, 0);
    const std::string followed = key_a + "after";
    Reader reader(followed);
    CHECK(padded ? skip_padded(&reader, mask, pad) : skip_plain(&reader, mask));
    CHECK(reader.left() == 5);
    if (pad.size != 1) continue;
    std::string back(a.size(), 'x');
    size_t n = 0;
    Reader again(followed);
    uchar *to = reinterpret_cast<uchar *>(&back[0]);
    CHECK(padded ? restore_padded(&again, mask, pad.bytes[0], to, back.size(), &n)
                 : restore_plain(&again, mask, to, back.size(), &n));
    CHECK(again.left() == 5);
    while (padded && !a.empty() && a.back() == static_cast<char>(pad.bytes[0])) a.pop_back();
    CHECK(back.substr(0, n) == a);
    Reader third(followed);
    if (n > 0) {
      CHECK(!(padded ? restore_padded(&third, mask, pad.bytes[0], to, n - 1, &n)
                     : restore_plain(&third, mask, to, n - 1, &n)));
    }
  }
}

// Whatever bytes come: no read outside them, and no byte written beyond the room.
void damage() {
  const Pad pads[] = {{{' '}, 1}, {{2, 9}, 2}, {{0, 0, ' '}, 3}};
  for (unsigned round = 0; round < 300000; round++) {
    const size_t size = chance.below(12);
    std::vector<char> bytes(size), room(chance.below(8));
    const char few[] = {'\0', '\1', '\2', '\3', ' ', '\xff', '\xfd', '\xdf', '\t', 'a'};
    for (char &byte : bytes) byte = few[chance.below(sizeof(few))];
    const std::string_view text(bytes.data(), size);
    const uchar mask = chance.one_in(2) ? 0xff : 0;
    Reader one(text), two(text), three(text), four(text), five(text);
    size_t n = 0;
    uint64_t number;
    std::string_view inner;
    if (skip_plain(&one, mask)) CHECK(one.left() <= size);
    skip_padded(&two, mask, pads[chance.below(3)]);
    uchar *to = reinterpret_cast<uchar *>(room.data());
    if (restore_plain(&three, mask, to, room.size(), &n)) CHECK(n <= room.size());
    if (restore_padded(&four, mask, ' ', to, room.size(), &n)) CHECK(n <= room.size());
    while (five.varint(&number)) {
    }
    Reader six(text);
    while (six.with_length(&inner) && six.left() > 0) CHECK(inner.size() < size);
  }
}

void varints() {
  for (unsigned round = 0; round < 10000; round++) {
    const uint64_t value = chance.next() >> chance.below(64);
    std::string bytes;
    append_varint(&bytes, value);
    uint64_t back = 0;
    Reader reader(bytes);
    CHECK(reader.varint(&back) && back == value && reader.left() == 0);
    bytes.pop_back();
    Reader cut(bytes);
    CHECK(!cut.varint(&back));
  }
  Reader endless(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  uint64_t value;
  CHECK(!endless.varint(&value));
}

void prefixes() {
  std::string key = "ab";
  CHECK(next_after_prefix(&key) && key == "ac");
  key = "a\xff\xff";
  CHECK(next_after_prefix(&key) && key == "b");
  key = std::string("a\x7f");
  CHECK(next_after_prefix(&key) && key == "a\x80");
  key = "\xff\xff";
  CHECK(!next_after_prefix(&key));
  key = "";
  CHECK(!next_after_prefix(&key));
  key = "a\xff\xff";
  CHECK(next_of_length(&key) && key == std::string("b\0\0", 3));
  key = "ab";
  CHECK(next_of_length(&key) && key == "ac");
  key = "\xff\xff";
  CHECK(!next_of_length(&key));
  key = "";
  CHECK(!next_of_length(&key));
  CHECK(begins_with("abc", "ab") && begins_with("ab", "ab") && !begins_with("a", "ab"));
}

}  // namespace
}  // namespace shale_sql

int main() {
  shale_sql::integers();
  shale_sql::reals<float>();
  shale_sql::reals<double>();
  shale_sql::texts();
  shale_sql::damage();
  shale_sql::varints();
  shale_sql::prefixes();
  printf("forms: ok\n");
}
