// Positions of rows: what the server keeps of a row to read it again.
//
// A position is the primary key's bytes, zeros after, their number at the end: so positions
// compare, byte by byte, as the rows of a scan do, which the server counts on where it merges
// scans. It sorts and stores them at their full length. Of a collation of Unicode's a key may be
// many times as long as nearly all texts have it, so a position has room for three eighths of that:
// enough for texts of Han or Hangul at their full length. A key that is longer still is kept aside
// until the statement ends; its position has its beginning, and a sum that stands for all of it.

#include "handler/ha_shale.h"

#include <mysql/service_md5.h>

#include "txn/trx.h"

using namespace shale_sql;

namespace {

constexpr size_t kLengthBytes = 2;
constexpr size_t kSumBytes = 16;
// In place of the length.
constexpr unsigned kIsAside = 0xffff;
// Only of keys that may be so many times as long as their columns.
constexpr size_t kLong = 4;

}  // namespace

uint ha_shale::position_bytes() const {
  const size_t most = primary().codec->max_bytes();
  const uint number = table->s->primary_key;
  const size_t usual = number == MAX_KEY ? most : table->key_info[number].key_length * kLong;
  return static_cast<uint>((most <= usual ? most : most * 3 / 8 + kSumBytes) + kLengthBytes);
}

void ha_shale::set_ref(std::string_view primary_key, uchar *to) {
  const size_t most = ref_length - kLengthBytes;
  size_t n = primary_key.size();
  if (n <= most && n < kIsAside) {
    memcpy(to, primary_key.data(), n);
    memset(to + n, 0, most - n);
    int2store(to + most, n);
    return;
  }
  n = most - kSumBytes;
  memcpy(to, primary_key.data(), n);
  my_md5(to + n, primary_key.data(), primary_key.size());
  int2store(to + most, kIsAside);
  trx()->keep_aside({reinterpret_cast<char *>(to) + n, kSumBytes}, primary_key);
}

// Nothing: it is of a statement that has ended.
std::string_view ha_shale::key_of_ref(const uchar *from) const {
  const size_t most = ref_length - kLengthBytes;
  const auto *bytes = reinterpret_cast<const char *>(from);
  const unsigned n = uint2korr(from + most);
  if (n != kIsAside) return {bytes, std::min<size_t>(n, most)};
  return Trx::of(ha_thd())->kept_aside({bytes + most - kSumBytes, kSumBytes});
}

int ha_shale::cmp_ref(const uchar *a, const uchar *b) {
  const size_t most = ref_length - kLengthBytes;
  if (uint2korr(a + most) != kIsAside && uint2korr(b + most) != kIsAside) {
    return memcmp(a, b, ref_length);
  }
  return key_of_ref(a).compare(key_of_ref(b));
}

void ha_shale::position(const uchar *record) {
  if (shared_->def->hidden_key) return set_ref(last_.primary, ref);
  scan_.key.clear();
  primary().codec->pack_columns(record, &scan_.key);
  set_ref(scan_.key, ref);
}

int ha_shale::rnd_pos(uchar *buf, uchar *pos) {
  if (is_sequence()) return read_sequence(buf);
  last_.primary.assign(key_of_ref(pos));
  bool keyread = asked_.keys_only;
  asked_.keys_only = false;
  forget_locked();
  BytesHandle refused_by;
  int error = 0;
  if (refused_by_ != nullptr && take_refused(last_.primary, &refused_by)) {
    last_.actions = refused_after_;
    error = fill_from_primary(buf, last_.primary, view_of(refused_by));
  } else {
    error = read_by_primary(last_.primary, buf, HA_ERR_KEY_NOT_FOUND);
  }
  asked_.keys_only = keyread;
  return finish_read(error, buf);
}
