// Threads that start together on chosen cores: the basis of all benchmarks with more than one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lab/channels/loops/benchmark.h"

namespace weir::channel_bench {

// Runs body(0) ... body(threads - 1) at once, each on its own thread, bound according to `cores`, and returns the
// nanoseconds from their release to the end of the last. Threads exist and have run before they are released.
std::int64_t run_team(const std::vector<int>& cores, int threads, const std::function<void(int)>& body);

// Binds the calling thread during its lifetime; for benchmarks with one thread.
class BoundToCore {
 public:
  explicit BoundToCore(const std::vector<int>& cores, int index = 0);
  ~BoundToCore();
  BoundToCore(const BoundToCore&) = delete;
  BoundToCore& operator=(const BoundToCore&) = delete;

 private:
  std::vector<std::uint8_t> before_;  // the mask in the kernel's format; empty: nothing was changed
};

// Everything sent must be received, in any order: compares counts and sums of mixed values.
struct Tally {
  std::uint64_t count = 0, sum = 0;

  void add(std::uint64_t value) noexcept {
    ++count;
    sum += mix(value);
  }
  void add(const Tally& other) noexcept {
    count += other.count;
    sum += other.sum;
  }
  friend bool operator==(const Tally&, const Tally&) = default;

  // Cheap, and different for values that are close to each other.
  static std::uint64_t mix(std::uint64_t value) noexcept {
    value *= 0x9e3779b97f4a7c15U;
    return value ^ (value >> 29);
  }
};
// Puts both into the measurement; a difference is a failure, and then there are no samples.
void judge(const Tally& sent, const Tally& received, Measurement& measurement);

}  // namespace weir::channel_bench
