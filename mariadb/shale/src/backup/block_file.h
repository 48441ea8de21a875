// A file of blocks, each with a checksum, that is either whole or refused.
//
//   8 bytes  SHALETBL
//   4 bytes  the version of all that follows, the lowest byte first
//   blocks:  8 bytes  how many bytes its contents have
//            1 byte   its kind
//            contents
//            4 bytes  CRC-32C of its place in the file (0, 1, ...; 8 bytes) and all of the above
//
// The last block is of the kind kEnd, and nothing follows it.
#pragma once

#include "server.h"

#include "engine/errors.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace shale_sql {

enum class BlockKind : char { kTable = 'T', kEntries = 'E', kEnd = 'Z' };

// Writes one. What is not finished is removed.
class BlockWriter {
 public:
  explicit BlockWriter(std::string path) : path_(std::move(path)) {}
  BlockWriter(const BlockWriter &) = delete;
  BlockWriter &operator=(const BlockWriter &) = delete;
  ~BlockWriter();

  // In place of a file that is there.
  Error begin();
  Error add(BlockKind kind, std::string_view contents);
  // All is on disk then.
  Error finish();

 private:
  Error write(std::string_view bytes);
  Error failed(const char *what);

  const std::string path_;
  File file_ = -1;
  uint64_t place_ = 0;
};

class BlockReader {
 public:
  explicit BlockReader(std::string path) : path_(std::move(path)) {}
  BlockReader(const BlockReader &) = delete;
  BlockReader &operator=(const BlockReader &) = delete;
  ~BlockReader();

  // HA_ERR_TABLESPACE_MISSING: there is no such file.
  Error begin();
  // After the block kEnd there is none to read.
  Error next(BlockKind *kind, std::string *contents);
  // That the file cannot be of use: its name, and why.
  Error damaged(const std::string &why) const;

 private:
  Error read(void *to, size_t bytes);

  const std::string path_;
  File file_ = -1;
  uint64_t place_ = 0;
  uint64_t left_ = 0;  // bytes of the file
};

}  // namespace shale_sql
