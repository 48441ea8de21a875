// Paths of tables, and the files that the server keeps of them: a definition (.frm), and the list
// of partitions (.par) of a table that has some. Each of these is a table to this engine.
#pragma once

#include <string>

namespace shale_sql {

// The file that a table is exported to, and imported from, beside its .frm.
std::string moved_file(const std::string &path);
// All such files of a database whose folder is to go.
void delete_moved_files(const std::string &folder);

bool is_partition(const std::string &path);
// The name of a partition as users write it, of a subpartition that of its partition; empty: it is
// none.
std::string partition_name(const std::string &path);
// The path of the table, which its files are named by.
std::string table_of(const std::string &path);
// Whether both are the same partition of a table that is renamed.
bool is_same_partition(const std::string &path, const std::string &other);
// Names that only the server gives, to what it makes on the way.
bool is_intermediate(const std::string &path);

bool has_frm(const std::string &path);
bool has_partition_list(const std::string &path);
// Whether the list of its table has a partition.
bool is_listed(const std::string &partition);
// A list gets the name of the renamed table. 0, or an error's number.
int rename_partition_list(const std::string &from, const std::string &to);
void delete_partition_list(const std::string &path);

}  // namespace shale_sql
