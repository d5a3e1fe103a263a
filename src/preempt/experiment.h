// How long an urgent command waits behind long ones, for each way there is to let it pass. A victim keeps the device
// busy; an intruder comes open loop, at moments drawn beforehand, and is timed from the moment it was due: a late host
// or a full queue counts, nothing is omitted. Observes; what follows from it is for curve.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace weir::preempt {

enum class VictimKind : std::uint8_t {
  waves,       // kernels of so many blocks as fit at once, times `waves`; the next one follows at once
  persistent,  // one kernel that fills the device and goes on, block after block, until it is told to end
  memory,      // as waves, but its blocks stream through memory
};
std::string_view name_of(VictimKind kind);

struct Victim {
  VictimKind kind = VictimKind::waves;
  int waves = 4;                    // 1 to 256: a kernel lasts about waves * block_ns
  std::int64_t block_ns = 100'000;  // 10 us to 10 ms
};

struct Plan {
  std::vector<Victim> victims;
  int requests = 1000;                   // of the intruder, per mechanism and victim
  std::int64_t interval_ns = 3'000'000;  // between them on average; exponential, so that they meet the victim anywhere
  std::int64_t intruder_ns = 0;          // its own length; 0: as short as a kernel can be
  int alone_repeats = 3;                 // how often the intruder is timed alone, spread over the experiment
  std::uint32_t in_flight = 2;           // of the launch gate
  std::uint64_t seed = 1;
};

// One command of the intruder, on the host's clock.
struct Request {
  std::int64_t due_ns = 0;
  std::int64_t submitted_ns = 0;
  std::int64_t started_ns = kNoTime;  // its first block
  std::int64_t ended_ns = kNoTime;
};

// What was seen with one mechanism and one victim, or of the intruder alone.
struct Observation {
  std::vector<Request> requests;
  std::int64_t clock_error_ns = 0;  // that started_ns may be wrong by, where it comes from another clock
  std::int64_t victim_wall_ns = 0;  // for which the victim was observed; 0: there was none
  std::uint64_t victim_blocks = 0;  // that ended in it
  std::optional<std::uint64_t> lost_blocks, repeated_blocks;  // of its work; none where they cannot be counted
  std::uint64_t preemptions = 0;                              // in which the victim gave way and came back
  std::int64_t block_ns = 0;                                  // as measured, median; 0: not measured
};

// Shows what goes on; may be empty. Returns false to end early: what was seen so far counts.
using Progress = std::function<bool(std::string_view what, int done, int of)>;

struct Experiment {
  Device* device = nullptr;
  const Plan* plan = nullptr;
  Progress progress;
};

// One way to let the intruder pass; one file each, listed in list.cpp.
struct Mechanism {
  std::string_view name;   // none, queues, priority, launch_gate, cooperative_flag, partition, time_slice, kfd_suspend
  std::string_view level;  // as XSched counts: "" where nothing is preempted, Lv1 pending, Lv2 in flight, Lv3 running
  std::string_view summary;
  // Whether this device can, and why not.
  Capability (*offered)(Device& device);
  // Also without an intruder (plan.requests == 0: the victim's full throughput, observed as long as requests would
  // take) and without a victim (null: the intruder alone, through the same path).
  Observation (*observe)(const Experiment& experiment, const Victim* victim);
  // True: needs device settings or a process of its own, which the command has to give it (see device_options).
  DeviceOptions (*device_options)(const DeviceOptions& usual) = nullptr;
};

std::span<const Mechanism> mechanisms();
// Rejects an unknown name with a suggestion.
const Mechanism& mechanism_named(std::string_view name);

// When the intruder's requests are due, from 0 on: exponential distances from the seed, the same for every mechanism.
std::vector<std::int64_t> due_times(const Plan& plan);

}  // namespace weir::preempt
