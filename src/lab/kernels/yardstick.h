// A short calculation that never changes: how fast this machine is at this moment, whatever the kernel. Comparisons of
// two runs can tell a slower machine from a slower kernel by it.
#pragma once

#include <cstddef>
#include <vector>

namespace weir::bench {

// Somewhat below 1 ms on one core: a chain of dependent multiplications and additions, and a walk through 4 MiB of
// memory that second-level caches do not hold.
class Yardstick {
 public:
  double run_ns();

 private:
  std::vector<std::size_t> memory_;  // allocated with the first run
  std::size_t next_ = 0;
  volatile double start_ = 1, end_ = 0;
};

}  // namespace weir::bench
