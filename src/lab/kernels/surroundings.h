// What the method reads of the host besides the kernel: time, what the scheduler took away, how fast the machine is
// just now. A table of functions, so that tests bring a machine of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace weir::bench {

// Counters that only grow; what this system does not tell is empty.
struct HostCounters {
  std::uint64_t switches = 0;                 // of this thread, against its will
  std::optional<std::uint64_t> waited_ns;     // that this thread could have run, but another had the core
  std::optional<std::uint64_t> stolen_ticks;  // that a hypervisor gave to others; all cores
  std::optional<std::uint64_t> throttles;     // periods in which our control group had used up its share
};

struct Surroundings {
  std::function<std::int64_t()> now_ns;
  // `all`: with steal time and throttling, which take some 10 us to read; the rest takes half a microsecond.
  std::function<HostCounters(bool all)> counters;
  std::function<double()> yardstick_ns;  // how long a calculation takes that never changes
};

// Of this thread. Opens files of /proc once, and memory for the yardstick with its first call.
Surroundings host_surroundings();

}  // namespace weir::bench
