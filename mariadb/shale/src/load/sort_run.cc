// Writing and reading the file of a run through a buffer.

#include "load/sort_run.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shale_sql {

namespace {

// Before each entry: the bytes of its key and of its value.
struct Head {
  uint32_t key_bytes;
  uint32_t value_bytes;
};

int open_without_name(const std::string &folder) {
#ifdef O_TMPFILE
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
#endif
  // Not every file system can do it.
  std::string name = folder + "/shale-sort-XXXXXX";
  const int named = mkostemp(&name[0], O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

SortRun::~SortRun() {
  if (file_ >= 0) close(file_);
}

bool SortRun::fail(const char *what, int error_number) {
  failed_ = what;
  error_number_ = error_number;
  return false;
}

bool SortRun::create(const std::string &folder) {
  file_ = open_without_name(folder);
  return file_ >= 0 || fail("make", errno);
}

bool SortRun::flush() {
  for (size_t done = 0; done < used_;) {
    const ssize_t n = ::write(file_, buffer_.get() + done, used_ - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("write", n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
  written_ += used_;
  used_ = 0;
  return true;
}

bool SortRun::write(std::string_view key, std::string_view value, size_t buffer_bytes) {
  const Head head{static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())};
  const size_t n = sizeof(head) + key.size() + value.size();
  if (n > size_ - used_) {
    if (!flush()) return false;
    if (n > size_) {
      size_ = n > buffer_bytes ? n : buffer_bytes;
      buffer_.reset(new char[size_]);
    }
  }
  char *to = buffer_.get() + used_;
  memcpy(to, &head, sizeof(head));
  memcpy(to + sizeof(head), key.data(), key.size());
  memcpy(to + sizeof(head) + key.size(), value.data(), value.size());
  used_ += n;
  return true;
}

bool SortRun::end_writing() {
  if (!flush()) return false;
  buffer_.reset();
  size_ = 0;
  return true;
}

void SortRun::start_reading(size_t buffer_bytes) {
  size_ = buffer_bytes < sizeof(Head) ? sizeof(Head) : buffer_bytes;
  buffer_.reset(new char[size_]);
  used_ = at_ = 0;
  read_ = 0;
}

// Sees to it that `wanted` bytes from `at_` on are in the buffer.
bool SortRun::fill(size_t wanted) {
  if (used_ - at_ >= wanted) return true;
  const size_t left = used_ - at_;
  if (left + (written_ - read_) < wanted) return fail("read", 0);
  if (wanted > size_) {
    std::unique_ptr<char[]> larger(new char[wanted]);
    memcpy(larger.get(), buffer_.get() + at_, left);
    buffer_ = std::move(larger);
    size_ = wanted;
  } else {
    memmove(buffer_.get(), buffer_.get() + at_, left);
  }
  at_ = 0;
  used_ = left;
  while (used_ < wanted) {
    const ssize_t n = pread(file_, buffer_.get() + used_, size_ - used_, static_cast<off_t>(read_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("read", n < 0 ? errno : 0);
    used_ += static_cast<size_t>(n);
    read_ += static_cast<uint64_t>(n);
  }
  return true;
}

bool SortRun::read() {
  if (at_ == used_ && read_ == written_) {
    at_end_ = true;
    buffer_.reset();
    return true;
  }
  Head head;
  if (!fill(sizeof(head))) return false;
  memcpy(&head, buffer_.get() + at_, sizeof(head));
  const size_t n = sizeof(head) + size_t{head.key_bytes} + head.value_bytes;
  if (!fill(n)) return false;
  const char *from = buffer_.get() + at_ + sizeof(head);
  key_ = std::string_view(from, head.key_bytes);
  value_ = std::string_view(from + head.key_bytes, head.value_bytes);
  at_ += n;
  return true;
}

}  // namespace shale_sql
