// After a crash: statements that change tables.
#pragma once

#include <string>

struct handlerton;

namespace shale_sql {

void fill_recovery(handlerton *hton);
// Before the server finishes or undoes what a crash has ended: partitions come to where it looks
// for them, and what files they have is noted. 0, or an error's number.
int begin_recovery();
// Whether the server is at that, and may ask for what was done before the crash.
bool is_recovering();
// The partition at a path could not be renamed: its .frm may go without it, and it is to be kept.
void note_not_renamed(const std::string &path);
// What is to be done of a table that has lost its .frm file.
constexpr const char *kWayOut = "restore that file (with partitions: and the .par file), or remove "
                                "the table by DROP TABLE";
// Whether a table has lost its .frm file, as far as is known: it may be back. Only DROP TABLE and
// DROP DATABASE remove such a one.
bool is_lost(const std::string &path);
int note_lost(const std::string &path);
int note_not_lost(const std::string &path);

}  // namespace shale_sql
