// Blocks of a file, written and read one after the other.

#include "backup/block_file.h"

#include <cerrno>
#include <cstring>

namespace shale_sql {

namespace {

constexpr std::string_view kMagic = "SHALETBL";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeadBytes = 9, kSumBytes = 4;
// What is read at once: contents that a damaged head promises take no memory before they come.
constexpr size_t kPiece = 1 << 20;

void append_number(std::string *out, uint64_t number, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) out->push_back(static_cast<char>(number >> (8 * i)));
}

uint64_t number_at(const uchar *from, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; i++) number |= static_cast<uint64_t>(from[i]) << (8 * i);
  return number;
}

uint32_t checksum(uint64_t place, std::string_view head, std::string_view contents) {
  std::string first;
  append_number(&first, place, 8);
  uint32_t sum = my_crc32c(0, first.data(), first.size());
  sum = my_crc32c(sum, head.data(), head.size());
  return my_crc32c(sum, contents.data(), contents.size());
}

}  // namespace

BlockWriter::~BlockWriter() {
  if (file_ < 0) return;
  my_close(file_, MYF(0));
  my_delete(path_.c_str(), MYF(0));
}

Error BlockWriter::failed(const char *what) {
  const int why = my_errno;
  const int number = why == ENOSPC || why == EDQUOT ? HA_ERR_RECORD_FILE_FULL : kErrEngine;
  return Error(number, std::string("could not ") + what + " " + path_ + ": " + strerror(why));
}

Error BlockWriter::write(std::string_view bytes) {
  const auto *from = reinterpret_cast<const uchar *>(bytes.data());
  return my_write(file_, from, bytes.size(), MYF(MY_NABP)) == 0 ? Error() : failed("write");
}

Error BlockWriter::begin() {
  file_ = my_create(path_.c_str(), 0, O_WRONLY | O_TRUNC, MYF(0));
  if (file_ < 0) return failed("create");
  std::string head(kMagic);
  append_number(&head, kVersion, 4);
  return write(head);
}

Error BlockWriter::add(BlockKind kind, std::string_view contents) {
  std::string head, sum;
  append_number(&head, contents.size(), 8);
  head.push_back(static_cast<char>(kind));
  append_number(&sum, checksum(place_++, head, contents), kSumBytes);
  if (Error error = write(head)) return error;
  if (Error error = write(contents)) return error;
  return write(sum);
}

Error BlockWriter::finish() {
  if (my_sync(file_, MYF(0)) != 0) return failed("sync");
  const int closed = my_close(file_, MYF(0));
  file_ = -1;
  if (closed != 0 || my_sync_dir_by_file(path_.c_str(), MYF(0)) != 0) {
    Error error = failed("sync");
    my_delete(path_.c_str(), MYF(0));
    return error;
  }
  return 0;
}

BlockReader::~BlockReader() {
  if (file_ >= 0) my_close(file_, MYF(0));
}

Error BlockReader::damaged(const std::string &why) const {
  return Error(kErrEngine, path_ + " " + why);
}

Error BlockReader::read(void *to, size_t bytes) {
  if (bytes > left_) return damaged("is damaged: it ends too early");
  if (my_read(file_, static_cast<uchar *>(to), bytes, MYF(MY_NABP)) != 0) {
    return damaged(std::string("could not be read: ") + strerror(my_errno));
  }
  left_ -= bytes;
  return 0;
}

Error BlockReader::begin() {
  file_ = my_open(path_.c_str(), O_RDONLY, MYF(0));
  if (file_ < 0 && my_errno == ENOENT) {
    return Error(HA_ERR_TABLESPACE_MISSING, "there is no file " + path_);
  }
  MY_STAT found;
  if (file_ < 0 || my_fstat(file_, &found, MYF(0)) != 0) {
    return damaged(std::string("could not be opened: ") + strerror(my_errno));
  }
  left_ = static_cast<uint64_t>(found.st_size);
  char head[kMagic.size() + 4];
  if (left_ < sizeof(head)) return damaged("is no table of Shale's: it is too short");
  if (Error error = read(head, sizeof(head))) return error;
  if (std::string_view(head, kMagic.size()) != kMagic) {
    return damaged("is no table of Shale's: it begins otherwise");
  }
  const uint64_t version = number_at(reinterpret_cast<uchar *>(head) + kMagic.size(), 4);
  if (version == kVersion) return 0;
  return damaged("is of version " + std::to_string(version) + ", this server reads version " +
                 std::to_string(kVersion));
}

Error BlockReader::next(BlockKind *kind, std::string *contents) {
  char head[kHeadBytes];
  uchar sum[kSumBytes];
  if (Error error = read(head, sizeof(head))) return error;
  const uint64_t bytes = number_at(reinterpret_cast<uchar *>(head), 8);
  const std::string block = "block " + std::to_string(place_);
  if (left_ < kSumBytes || bytes > left_ - kSumBytes) {
    return damaged("is damaged: it ends within " + block + ", or that has another length");
  }
  contents->clear();
  while (contents->size() < bytes) {
    const size_t had = contents->size(), piece = std::min<uint64_t>(kPiece, bytes - had);
    contents->resize(had + piece);
    if (Error error = read(contents->data() + had, piece)) return error;
  }
  if (Error error = read(sum, sizeof(sum))) return error;
  if (number_at(sum, kSumBytes) != checksum(place_, {head, sizeof(head)}, *contents)) {
    return damaged("is damaged: " + block + " has another checksum");
  }
  place_++;
  *kind = static_cast<BlockKind>(head[8]);
  if (*kind == BlockKind::kEnd && left_ != 0) {
    return damaged("is damaged: something follows its end");
  }
  return 0;
}

}  // namespace shale_sql
