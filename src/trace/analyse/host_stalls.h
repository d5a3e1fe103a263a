// Where the host delayed the device, and where the device delayed the host. Reads spans and calls of one device; knows
// no kernel names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// The device was idle only because the host had not submitted the next command.
struct LaunchStall {
  std::int64_t from_ns = 0, to_ns = 0;  // the idle gap
  std::int64_t submitted_ns = 0;        // when the host submitted the next command; at most to_ns
  std::uint32_t span = 0;               // the next command
  std::uint32_t call = kNoCall;  // the submitting thread's longest call meanwhile; kNoCall: longer outside the driver
  double call_ns = 0;            // part of the gap spent in that call; 0 without one
};

struct LaunchBound {
  std::size_t gaps = 0;       // all idle gaps of the device
  double idle_ns = 0;         // and their sum
  std::size_t host_gaps = 0;  // those that began before the host submitted the next command
  double host_ns = 0;         // in these: idle time until the call
  double launch_ns = 0;       // in these: idle time from the call to the start, without held_ns
  double share_of_idle = 0;   // host_ns over idle_ns, 0 where there was no idle time
  // Gaps that began while the host was in the call that submitted the next command: it cannot launch faster.
  std::size_t calling_gaps = 0;
  double calling_ns = 0;         // in these: idle time until the driver had it
  double calling_launch_ns = 0;  // in these: idle time from then to the start, without held_ns
  // Idle for over a millisecond although the driver had the next command: no launch takes as long, so the command
  // waited for something that is not on this device's timeline.
  std::size_t held_gaps = 0;
  double held_ns = 0, held_most_ns = 0;  // in all, and in the longest of them
  std::uint32_t held_span = 0;           // which ended the longest
  std::size_t unknown_gaps = 0;          // the next command has no time of submission
  double unknown_ns = 0;
  // host_ns by what the submitting thread did: it waited for the device, was in another driver call, or neither. Empty
  // where the source has no calls.
  std::optional<double> synchronizing_ns, in_calls_ns, outside_ns;
  std::vector<LaunchStall> longest;  // by the host's part, at most kMaxStalls
};

struct BlockedCall {
  std::uint32_t call = 0;
  double took_ns = 0;
  std::size_t backlog = 0;  // commands submitted but not started when the call began
};

// Calls of one function from one line of the program.
struct CallSite {
  std::uint32_t name = kNoName;
  std::uint32_t line = kNoName;  // kNoName: not known
  std::size_t count = 0;
  double total_ns = 0;
};

struct BlockedCalls {
  std::size_t count = 0;
  double total_ns = 0;
  std::vector<BlockedCall> longest;  // at most kMaxStalls
  std::vector<CallSite> sites;       // most time first
};

// The program waited for its data.
struct LoaderWait {
  std::int64_t from_ns = 0, to_ns = 0;
  double idle_ns = 0;  // part of it in which the device was idle
};

struct DataLoading {
  std::size_t waits = 0;
  double total_ns = 0;              // waits at once count once
  double idle_ns = 0;               // in these: the device was idle
  std::vector<LoaderWait> longest;  // by idle time, at most kMaxStalls
};

struct HostBlocked {
  std::size_t launches = 0;
  double launch_p50_ns = 0;  // slow means beyond ten times the median of the same function's launches, and beyond 20 us
  std::size_t most_backlog = 0;  // over all launches
  BlockedCalls queue_full;       // slow launches while the backlog was deep: the queue was full
  BlockedCalls slow;             // other slow launches: lazy loading, locks, a host that was busy elsewhere
  BlockedCalls synchronize;      // calls whose name says that they wait for the device
  BlockedCalls copies;           // copies that returned only when the data had arrived
};

inline constexpr std::size_t kMaxStalls = 10;

struct HostStalls {
  std::optional<LaunchBound> launch_bound;
  std::string launch_bound_reason;  // why there is none
  std::optional<HostBlocked> blocked;
  std::string blocked_reason;
  std::optional<DataLoading> loading;
  std::string loading_reason;
};

// `names` are those of the whole timeline; without them, data loading is not recognised.
HostStalls host_stalls(const Timeline& timeline, const std::vector<std::string>& names = {});

}  // namespace weir
