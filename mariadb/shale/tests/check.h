// What the unit tests share: a check that says where it failed, and chance that can be repeated.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #condition);      \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

// SplitMix64; SHALE_SEED begins another row of numbers.
class Chance {
 public:
  Chance() {
    const char *seed = getenv("SHALE_SEED");
    state_ = seed ? strtoull(seed, nullptr, 10) : 1;
  }
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t end) { return next() % end; }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

inline int sign(int order) { return (order > 0) - (order < 0); }

inline std::string hex(const std::string &bytes) {
  std::string text;
  char two[4];
  for (unsigned char byte : bytes) {
    snprintf(two, sizeof(two), "%02x ", byte);
    text += two;
  }
  return text;
}
