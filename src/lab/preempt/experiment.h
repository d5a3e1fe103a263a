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
  persistent,  // kernels that fill the device and take block after block: 20 ms of work, 8 blocks each at least
  memory,      // as waves, but its blocks stream through memory
};
inline constexpr std::int64_t kPersistentNs = 20'000'000, kPersistentBlocks = 8;
std::string_view name_of(VictimKind kind);
std::optional<VictimKind> victim_kind_named(std::string_view name);

struct Victim {
  VictimKind kind = VictimKind::waves;
  int waves = 4;                    // 1 to 256: a kernel lasts about waves * block_ns; not of persistent ones
  std::int64_t block_ns = 100'000;  // 10 us to 10 ms
};

struct Plan {
  std::vector<Victim> victims;
  int requests = 1000;                   // of the intruder, per mechanism and victim
  std::int64_t interval_ns = 3'000'000;  // between them on average; exponential, so that they meet the victim anywhere
  std::int64_t intruder_ns = 0;          // its own length; 0: as short as a kernel can be
  int alone_repeats = 3;                 // how often the intruder is timed alone, spread over the experiment
  std::uint32_t in_flight = 2;           // of the launch gate
  std::uint32_t queued_ahead = 8;   // kernels that the victim keeps queued where nothing bounds them; persistent: 2
  std::int64_t undisturbed_ns = 0;  // how long the victim is observed without requests; 0: 200 intervals
  std::uint64_t seed = 1;
};

// One command of the intruder, on the host's clock.
struct Request {
  std::int64_t due_ns = 0;
  std::int64_t submitted_ns = 0;
  // By the kernel's clock, brought to the host's: the host would see both later.
  std::int64_t started_ns = kNoTime;  // its first block
  std::int64_t ended_ns = kNoTime;
};

// What was seen with one mechanism and one victim, or of the intruder alone.
struct Observation {
  std::vector<Request> requests;
  std::int64_t clock_error_ns = 0;  // that both may be wrong by, where the kernel's clock is another one
  std::int64_t victim_wall_ns = 0;  // from its first start to the end of a launch when all was over; 0: there was none
  std::uint64_t victim_blocks = 0;  // that ended in it
  std::optional<std::uint64_t> lost_blocks, repeated_blocks;  // of its work; none where they cannot be counted
  std::uint64_t preemptions = 0;     // in which a launch gave way before its work was done, and came back
  std::int64_t block_ns = 0;         // a kernel's time by its waves, alone, median of up to three; 0: not measured
  std::int64_t block_words = 0;      // of 16 bytes that a block reads, by a trial; 0: it reads none
  std::uint32_t blocks_at_once = 0;  // that fit on the device
  std::vector<std::int64_t> suspend_ns, resume_ns;  // what the calls took where preemption is a call: kfd_suspend
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
  // Also without an intruder (plan.requests == 0: the victim's full throughput) and without a victim (null: the
  // intruder alone, through the same path).
  Observation (*observe)(const Experiment& experiment, const Victim* victim);
  // Not null: the device has to be opened with these settings; where a driver reads them once, in a process of its own.
  DeviceOptions (*device_options)(const DeviceOptions& usual) = nullptr;
  // The victim is another process: run_victim() there, and observe() with null here, while that one runs.
  bool is_between_processes = false;
};

// The victim by itself, until `is_over` says so: for a process that is nothing else. What it says is asked often, and
// must not wait.
Observation run_victim(const Experiment& experiment, const Victim& victim, const std::function<bool()>& is_over);

std::span<const Mechanism> mechanisms();
// Rejects an unknown name with a suggestion.
const Mechanism& mechanism_named(std::string_view name);

// When the intruder's requests are due, from 0 on: exponential distances from the seed, the same for every mechanism.
std::vector<std::int64_t> due_times(const Plan& plan);

}  // namespace weir::preempt
