// Where the host held the device up, and where the device held the host up. Reads spans and calls of one device; knows
// no kernel names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// The device was idle although nothing but the host kept the next command from it.
struct LaunchStall {
  std::int64_t from_ns = 0, to_ns = 0;  // the idle gap
  std::int64_t submitted_ns = 0;        // the host asked for the next command; at most to_ns
  std::uint32_t span = 0;               // the next command
  std::uint32_t call = kNoCall;         // in which the submitting thread spent most of the host's part; none where it
  double call_ns = 0;                   // was outside of the driver for longer
};

struct LaunchBound {
  std::size_t gaps = 0;       // idle gaps of the device, all
  double idle_ns = 0;         // and their sum
  std::size_t host_gaps = 0;  // those that began before the host asked for the next command
  double host_ns = 0;         // in these: idle until the call
  double launch_ns = 0;       // in these: idle from the call to the start
  double share_of_idle = 0;   // host_ns of idle_ns, 0 where there was no idle time
  // Gaps that began while the host was in the call that submitted the next command: it cannot launch faster.
  std::size_t calling_gaps = 0;
  double calling_ns = 0;         // in these: idle until the driver had it
  double calling_launch_ns = 0;  // in these: idle from then to the start
  std::size_t unknown_gaps = 0;  // whose next command has no time of submission
  double unknown_ns = 0;
  // host_ns by what the submitting thread did: waited for the device, was in another call of the driver, or neither.
  // Nothing where the source has no calls.
  std::optional<double> synchronizing_ns, in_calls_ns, outside_ns;
  std::vector<LaunchStall> longest;  // by the host's part, at most kMostStalls
};

struct BlockedCall {
  std::uint32_t call = 0;
  double took_ns = 0;
  std::size_t backlog = 0;  // commands that had been submitted and had not started when the call began
};

struct BlockedCalls {
  std::size_t count = 0;
  double total_ns = 0;
  std::vector<BlockedCall> longest;  // at most kMostStalls
};

struct HostBlocked {
  std::size_t launches = 0;
  double launch_p50_ns = 0;      // slow is beyond ten medians of the same function's launches, and beyond 20 us
  std::size_t most_backlog = 0;  // over all launches
  BlockedCalls queue_full;       // slow launches while the backlog was deep: the queue was full
  BlockedCalls slow;             // other slow launches: lazy loading, locks, a host that was busy elsewhere
  BlockedCalls synchronize;      // waited for the device by name
  BlockedCalls copies;           // copies that returned only when the data had arrived
};

inline constexpr std::size_t kMostStalls = 10;

struct HostStalls {
  std::optional<LaunchBound> launch_bound;
  std::string launch_bound_reason;  // why there is none
  std::optional<HostBlocked> blocked;
  std::string blocked_reason;
};

HostStalls host_stalls(const Timeline& timeline);

}  // namespace weir
