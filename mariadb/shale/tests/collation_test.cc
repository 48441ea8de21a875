// Every collation of the server: keys compare as it does, end where they say, and give back the
// text where they promise to. Linked with the server's own strings library.

#include <my_global.h>
#include <my_sys.h>
#include <m_ctype.h>

#include "check.h"
#include "codec/collation.h"

#include <cstring>
#include <vector>

namespace shale_sql {
namespace {

// Characters that collations treat in ways of their own: spaces and what is below them, case,
// accents, expansions, contractions (ch, ll, dz, aa ...), ignorable ones, Thai vowels that change
// place, letters of one weight in many scripts, and such outside the first plane.
const my_wc_t kCharacters[] = {
    0,      1,      '\t',   '\n',   ' ',    ' ',    ' ',    '!',    '-',    '0',    '9',    'A',
    'B',    'C',    'H',    'a',    'a',    'b',    'c',    'd',    'e',    'g',    'h',    'j',
    'k',    'l',    'n',    'o',    's',    'y',    'z',    '~',    0x7f,   0xa0,   0xa8,   0xad,
    0xc4,   0xd6,   0xdf,   0xe4,   0xe5,   0xe6,   0xe9,   0xf1,   0xf8,   0xfe,   0xff,   0x107,
    0x10d,  0x132,  0x159,  0x17f,  0x1c6,  0x300,  0x301,  0x308,  0x327,  0x3b1,  0x3c3,  0x410,
    0x44f,  0x5d0,  0x627,  0x640,  0x905,  0xe01,  0xe02,  0xe30,  0xe40,  0xe41,  0xe48,  0xe4c,
    0x1000, 0x10d0, 0x17d2, 0x1e9e, 0x200b, 0x2028, 0x2017, 0x2126, 0x3000, 0x3042, 0x30a2, 0x309d,
    0x30fc, 0x3400, 0x4e00, 0x4e9c, 0x9fff, 0xac00, 0xf900, 0xfb01, 0xfdfa, 0xfeff, 0xff71, 0xfffd,
    0x10400, 0x1f600, 0x1f64f, 0x20000, 0xe0001};

struct Failures {
  size_t collations = 0;
  size_t comparisons = 0;
  size_t wrong = 0;
  size_t shown = 0;  // of the present collation
};

class OneCollation {
 public:
  OneCollation(CHARSET_INFO *charset, Chance *chance, Failures *failures)
      : charset_(charset), chance_(chance), failures_(failures) {
    for (const my_wc_t character : kCharacters) {
      uchar bytes[8];
      const int n = charset->wc_mb(character, bytes, bytes + sizeof(bytes));
      if (n > 0) characters_.emplace_back(reinterpret_cast<char *>(bytes), n);
    }
    if (charset == &my_charset_bin) {
      for (unsigned byte = 0; byte < 256; byte++) characters_.emplace_back(1, char(byte));
    }
  }

  void run(size_t rounds) {
    const Collation varchar(charset_, false), fixed(charset_, true);
    for (size_t i = 0; i < rounds; i++) {
      const size_t chars = chance_->below(9) + (chance_->one_in(50) ? 600 : 0);
      const std::string a = text(chars);
      const std::string b = chance_->one_in(2) ? text(chars) : like(a);
      compare(varchar, a, b, false, 0);
      compare(fixed, char_of(a, chars + 2), char_of(b, chars + 2), true, chars + 2);
    }
  }

 private:
  std::string character() { return characters_[chance_->below(characters_.size())]; }
  std::string space() {
    uchar bytes[8];
    return {reinterpret_cast<char *>(bytes),
            size_t(charset_->wc_mb(' ', bytes, bytes + sizeof(bytes)))};
  }
  std::string text(size_t most) {
    std::string text;
    for (size_t n = chance_->below(most + 1); n > 0; n--) text += character();
    return text;
  }
  // Another string with much the same weights.
  std::string like(const std::string &text) {
    std::string other = text;
    if (chance_->one_in(3)) {
      std::string cased(text.size() * 4 + 8, '\0');
      const bool up = chance_->one_in(2);
      const size_t n = up ? charset_->caseup(text.data(), text.size(), &cased[0], cased.size())
                          : charset_->casedn(text.data(), text.size(), &cased[0], cased.size());
      other = cased.substr(0, n);
    }
    const size_t chars = charset_->numchars(other.data(), other.data() + other.size());
    const size_t cut = charset_->charpos(other.data(), other.data() + other.size(),
                                         chance_->below(chars + 1));
    switch (chance_->below(4)) {
      case 0: return other + space();
      case 1: return other + space() + character();
      case 2: return other.substr(0, cut);
      default: return other.substr(0, cut) + character() + other.substr(cut);
    }
  }
  // The text as a CHAR column of `chars` characters has it.
  std::string char_of(const std::string &text, size_t chars) {
    const size_t n = charset_->charpos(text.data(), text.data() + text.size(), chars);
    std::string padded = text.substr(0, n);
    const size_t kept = padded.size();
    padded.resize(std::max(chars * charset_->mbmaxlen, kept));
    charset_->fill(&padded[kept], padded.size() - kept, charset_->pad_char);
    return padded;
  }

  std::string key_of(const Collation &collation, const std::string &text, size_t chars) {
    const uchar *bytes = reinterpret_cast<const uchar *>(text.data());
    size_t n = text.size();
    if (chars && !collation.strips()) n = collation.prefix_bytes(bytes, n, chars);
    std::string key;
    collation.append(bytes, n, &key);
    return key;
  }

  void compare(const Collation &collation, const std::string &a, const std::string &b, bool fixed,
               size_t chars) {
    const uchar *first = reinterpret_cast<const uchar *>(a.data());
    const uchar *second = reinterpret_cast<const uchar *>(b.data());
    // Without this flag a text that fills its column up to the last byte ends before spaces do.
    const uint padded =
        charset_->state & MY_CS_NOPAD ? 0 : MY_STRNNCOLLSP_NCHARS_EMULATE_TRIMMED_TRAILING_SPACES;
    const int expected =
        fixed ? charset_->coll->strnncollsp_nchars(charset_, first, a.size(), second, b.size(),
                                                   chars, padded)
              : charset_->coll->strnncollsp(charset_, first, a.size(), second, b.size());
    const std::string key_a = key_of(collation, a, chars), key_b = key_of(collation, b, chars);
    failures_->comparisons++;
    if (sign(key_a.compare(key_b)) != sign(expected)) {
      failures_->wrong++;
      if (failures_->shown++ < 3) {
        fprintf(stderr, "%s %s: %d expected\n  %s-> %s\n  %s-> %s\n", charset_->coll_name.str,
                fixed ? "CHAR" : "VARCHAR", sign(expected), hex(a).c_str(), hex(key_a).c_str(),
                hex(b).c_str(), hex(key_b).c_str());
      }
      return;
    }
    check_form(collation, a, key_a, fixed);
    // None is the beginning of another.
    if (expected != 0) {
      CHECK(key_a.compare(0, key_b.size(), key_b) != 0);
      CHECK(key_b.compare(0, key_a.size(), key_a) != 0);
    }
  }

  void check_form(const Collation &collation, const std::string &text, const std::string &key,
                  bool fixed) {
    Reader reader(key);
    CHECK(collation.skip(&reader, 0) && reader.left() == 0);
    std::string turned = key;
    turn_bits(&turned, 0);
    Reader turned_reader(turned);
    CHECK(collation.skip(&turned_reader, 0xff) && turned_reader.left() == 0);
    if (!collation.restorable()) return;
    std::string back(text.size() + 1, '\0');
    size_t n = 0;
    Reader again(turned);
    CHECK(collation.restore(&again, 0xff, reinterpret_cast<uchar *>(&back[0]), back.size(), &n));
    std::string expected = text;
    if (fixed || collation.loses_spaces())
      expected.resize(charset_->lengthsp(text.data(), text.size()));
    CHECK(back.compare(0, n, expected) == 0 && n == expected.size());
  }

  CHARSET_INFO *charset_;
  Chance *chance_;
  Failures *failures_;
  std::vector<std::string> characters_;
};

}  // namespace
}  // namespace shale_sql

int main(int count, char **arguments) {
  using namespace shale_sql;
  MY_INIT(arguments[0]);
  const size_t rounds = count > 1 ? strtoull(arguments[1], nullptr, 10) : 300;
  Chance chance;
  Failures failures;
  for (unsigned id = 1; id < 4096; id++) {
    CHARSET_INFO *charset = get_charset(id, MYF(0));
    if (!charset || (charset->state & MY_CS_HIDDEN)) continue;  // no column has a hidden one
    failures.collations++;
    failures.shown = 0;
    OneCollation(charset, &chance, &failures).run(rounds);
  }
  printf("%zu collations, %zu comparisons, %zu wrong\n", failures.collations, failures.comparisons,
         failures.wrong);
  my_end(0);
  return failures.wrong != 0 || failures.collations < 300;
}
