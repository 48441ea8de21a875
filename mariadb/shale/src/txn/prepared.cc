// What the server asks about prepared transactions after a crash, and of XA from any connection.

#include "txn/prepared.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "tables/query_cache.h"
#include "txn/in_doubt.h"

#include <string_view>
#include <vector>

namespace shale_sql {

namespace {

// Of the X/Open XA interface; no header of the server has them.
constexpr int kXaOk = 0;
constexpr int kXaResourceManagerError = -3;
constexpr int kXaNotThere = -4;

bool parse(std::string_view bytes, XID *xid) {
  if (bytes.size() < 12) return false;
  auto part = [&](size_t at) {
    uint32_t number = 0;
    for (size_t i = 0; i < 4; i++) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
    return static_cast<int32_t>(number);
  };
  long gtrid = part(4), bqual = part(8);
  if (gtrid < 0 || bqual < 0 || gtrid > MAXGTRIDSIZE || bqual > MAXBQUALSIZE) return false;
  if (bytes.size() != 12 + static_cast<size_t>(gtrid + bqual)) return false;
  xid->set(part(0), bytes.data() + 12, gtrid, bytes.data() + 12 + gtrid, bqual);
  return true;
}

// Tells `found` the names of prepared transactions until it answers false.
template <typename Found>
Error each_prepared(Found found) {
  std::string name;
  for (bool first = true;; first = false) {
    shale_prepared *next = nullptr;
    const char *after = first ? nullptr : name.data();
    shale_error *error = shale_prepared_find(engine().db, after, name.size(), true, &next);
    if (error != nullptr) return consume_error(error);
    if (next == nullptr) return 0;
    size_t length = 0;
    const char *bytes = static_cast<const char *>(shale_prepared_xid(next, &length));
    name.assign(bytes, length);
    shale_prepared_free(next);
    XID xid;
    if (parse(name, &xid) && !found(xid)) return 0;
  }
}

int recover(handlerton *, XID *list, uint room) {
  uint listed = 0;
  Error error = each_prepared([&](const XID &xid) {
    if (listed < room) list[listed++] = xid;
    return listed < room;
  });
  if (error) log_error("prepared transactions cannot be listed: " + error.text());
  return static_cast<int>(listed);
}

Error find(const std::string &name, shale_prepared **prepared) {
  return consume_error(
      shale_prepared_find(engine().db, name.data(), name.size(), false, prepared));
}

// The server tells XIDs apart by their texts only: it calls with the format that the user gives
// now, which may be another than that of XA START.
Error find_in_any_format(const XID &xid, shale_prepared **prepared) {
  const std::string name = bytes_of_xid(xid);
  Error error = find(name, prepared);
  if (error || *prepared != nullptr) return error;
  std::string other;
  error = each_prepared([&](const XID &one) {
    if (one.eq(xid.gtrid_length, xid.bqual_length, xid.data)) other = bytes_of_xid(one);
    return other.empty();
  });
  return error || other.empty() ? std::move(error) : find(other, prepared);
}

int decide(XID *xid, bool commits) {
  shale_prepared *prepared = nullptr;
  Error error = find_in_any_format(*xid, &prepared);
  if (error || prepared == nullptr) return error ? kXaResourceManagerError : kXaNotThere;
  // The server has it in its binary log and forgets it, whatever it is told.
  ChangesOfAnyTable changes;
  error = engine().in_doubt.decide(prepared, commits, true);
  return !error ? kXaOk : kXaResourceManagerError;
}

int commit_by_xid(handlerton *, XID *xid) { return decide(xid, true); }
int rollback_by_xid(handlerton *, XID *xid) { return decide(xid, false); }

}  // namespace

// The format, the two lengths, the data.
std::string bytes_of_xid(const XID &xid) {
  std::string out;
  for (long part : {static_cast<long>(xid.formatID), xid.gtrid_length, xid.bqual_length}) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(part >> shift));
  }
  out.append(xid.data, static_cast<size_t>(xid.gtrid_length + xid.bqual_length));
  return out;
}

Error roll_back_what_the_server_prepared() {
  std::vector<XID> own;
  Error error = each_prepared([&](XID xid) {
    if (xid.get_my_xid() != 0) own.push_back(xid);
    return true;
  });
  for (size_t i = 0; !error && i < own.size(); i++) {
    if (decide(&own[i], false) != kXaOk) {
      error = Error(kErrEngine, "a transaction that the server had prepared was not rolled back");
    }
  }
  return error;
}

void fill_prepared(handlerton *hton) {
  hton->recover = recover;
  hton->commit_by_xid = commit_by_xid;
  hton->rollback_by_xid = rollback_by_xid;
}

}  // namespace shale_sql
