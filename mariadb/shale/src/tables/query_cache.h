// What the server's query cache has to know of a table: whether results that were read at some time
// are still what anyone would read now.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace shale_sql {

// Of one table, as long as it is open: how many transactions are under way that have written to it,
// what rows they have added, and a number that is another one after each of them has ended.
class Changes {
 public:
  Changes() = default;
  ~Changes();
  Changes(const Changes &) = delete;
  Changes &operator=(const Changes &) = delete;

  // What became of a transaction's rows.
  enum class End : uint8_t { kKept, kPartlyKept, kUndone };

  // Before the first write of a transaction, and after its end; `rows` as it has added by `wrote`.
  void begin() { writers_.fetch_add(1); }
  void end(int64_t rows, End how);
  void wrote(int rows) { rows_.fetch_add(rows, std::memory_order_relaxed); }
  // How many rows more than before there are for transactions that are under way.
  int64_t rows_under_way() const { return rows_.load(std::memory_order_relaxed); }
  // And how many there are not, since transactions were rolled back.
  int64_t rows_undone() const { return undone_.load(std::memory_order_relaxed); }
  // Another number when it is not known how many there are.
  uint64_t recounts() const { return recounts_.load(std::memory_order_relaxed); }
  // 0 while anybody writes. If it is the same at two times, nothing that was visible at the first
  // has changed up to the second, and nothing that was not visible then has become so.
  uint64_t quiet_number() const;

 private:
  friend class KeptResults;

  std::atomic<uint64_t> writers_{0};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> undone_{0};
  std::atomic<uint64_t> recounts_{0};
  std::atomic<uint64_t> number_{1};
  // What results are kept under, and the number of then; with the lock of KeptResults.
  uint64_t token_ = 0;
  uint64_t token_of_ = 0;
};

// The tokens under which the server keeps results. Tables are not kept open by it.
class KeptResults {
 public:
  enum class Answer { kGood, kBeingWritten, kStale };

  // That of what is read of a table whose number is this one.
  uint64_t token_of(const std::shared_ptr<Changes> &table, uint64_t number);
  // Whether what is kept under a token is what anyone would read.
  Answer look(uint64_t token);
  void forget(const Changes &table);

 private:
  friend class Changes;
  friend class ChangesOfAnyTable;

  // Every table's number is so much more than its own.
  std::atomic<uint64_t> number_of_all_{0};
  std::atomic<uint64_t> deciding_{0};
  std::mutex lock_;
  // With the lock. Tokens are never given twice.
  uint64_t last_token_ = 0;
  std::map<uint64_t, const Changes *> tables_;
};

// While it lives transactions are decided of which nobody knows what tables they have written:
// prepared ones, by name or late.
class ChangesOfAnyTable {
 public:
  ChangesOfAnyTable();
  ~ChangesOfAnyTable();
};

}  // namespace shale_sql
