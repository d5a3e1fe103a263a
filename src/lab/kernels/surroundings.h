// What the method reads from the host besides the kernel: time, losses to the scheduler, and the current speed of the
// machine. A table of functions, so that tests can supply their own machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace weir::bench {

// Counters that only grow; those that this system does not provide are empty.
struct HostCounters {
  std::uint64_t switches = 0;                 // involuntary context switches of this thread
  std::optional<std::uint64_t> waited_ns;     // time that this thread was ready but another had the core
  std::optional<std::uint64_t> stolen_ticks;  // that a hypervisor gave to others; all cores
  std::optional<std::uint64_t> throttles;     // periods in which the process' control group had used up its share
};

struct Surroundings {
  std::function<std::int64_t()> now_ns;
  // `all` includes steal time and throttling, which take some 10 us to read; the rest takes half a microsecond.
  std::function<HostCounters(bool all)> counters;
  std::function<double()> yardstick_ns;  // how long a fixed calculation takes
};

// For the calling thread. Opens files of /proc once; allocates memory for the yardstick at its first call.
Surroundings host_surroundings();

}  // namespace weir::bench
