// Measures how long an urgent command waits for long ones, for each mechanism that lets it pass. A victim keeps the
// device busy; an intruder comes open loop, at times drawn in advance, and is timed from the moment it was due: a late
// host or a full queue counts, nothing is omitted. Observes; curve.h draws the conclusions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace weir::preempt {

enum class VictimKind : std::uint8_t {
  waves,       // kernels with `waves` times as many blocks as fit at once; the next one follows at once
  persistent,  // kernels that fill the device and take block after block: 20 ms of work, at least 8 blocks each
  memory,      // like waves, but its blocks stream through memory
};
inline constexpr std::int64_t kPersistentNs = 20'000'000, kPersistentBlocks = 8;
std::string_view name_of(VictimKind kind);
std::optional<VictimKind> victim_kind_named(std::string_view name);

inline constexpr int kMaxWaves = 256;
struct Victim {
  VictimKind kind = VictimKind::waves;
  int waves = 4;                    // 1 to kMaxWaves: a kernel takes about waves * block_ns; unused by persistent ones
  std::int64_t block_ns = 100'000;  // 10 us to 10 ms
};

// What an experiment observes of these kinds if nobody asks for more. A cross instead of a grid: block times at four
// waves, waves at one block time, and one victim of each other kind.
std::vector<Victim> usual_victims(const std::vector<VictimKind>& kinds, bool is_quick);

struct ExperimentPlan {
  std::vector<Victim> victims;
  int requests = 1000;                   // of the intruder, per mechanism and victim
  std::int64_t interval_ns = 3'000'000;  // average distance; exponential, so that they hit the victim at any point
  std::int64_t intruder_ns = 0;          // its own duration; 0: as short as a kernel can be
  int alone_repeats = 3;                 // how often the intruder is timed alone, spread over the experiment
  std::uint32_t in_flight = 2;           // for the launch gate
  std::uint32_t queued_ahead = 8;        // kernels that the victim keeps queued without a limit; persistent: 2
  std::int64_t undisturbed_ns = 0;       // how long the victim is observed without requests; 0: 200 intervals
  std::uint64_t seed = 1;
};

// One command of the intruder, on the host's clock.
struct Request {
  std::int64_t due_ns = 0;
  std::int64_t submitted_ns = 0;
  // On the kernel's clock, converted to the host's: the host itself would see both later.
  std::int64_t started_ns = kNoTime;  // its first block
  std::int64_t ended_ns = kNoTime;
};

// The observation of one mechanism with one victim, or of the intruder alone.
struct Observation {
  std::vector<Request> requests;
  std::int64_t clock_error_ns = 0;  // error of both if the kernel has another clock
  std::int64_t victim_wall_ns = 0;  // from its first start to the end of its last observed launch; 0: there was none
  std::uint64_t victim_blocks = 0;  // that ended in this time
  std::optional<std::uint64_t> lost_blocks, repeated_blocks;  // of its work; nothing if they cannot be counted
  std::uint64_t preemptions = 0;     // how often a launch gave way before its work was done, and was resumed
  std::int64_t block_ns = 0;         // time of a kernel alone divided by its waves, median of up to three; 0: not
                                     // measured
  std::int64_t block_words = 0;      // words of 16 bytes that a block reads, by trial; 0: none
  std::uint32_t blocks_at_once = 0;  // that fit on the device
  std::vector<std::int64_t> suspend_ns, resume_ns;  // duration of the calls, if preemption is a call: kfd_suspend
};

// Reports progress; may be empty. Returns false to end early, with partial results.
using Progress = std::function<bool(std::string_view what, int done, int of)>;

struct Experiment {
  Device* device = nullptr;
  const ExperimentPlan* plan = nullptr;
  Progress progress;
};

// One way to let the intruder pass; one file each, listed in list.h.
struct Mechanism {
  std::string_view name;   // none, queues, priority, launch_gate, cooperative_flag, partition, time_slice, kfd_suspend
  std::string_view level;  // as in XSched: "" for no preemption, Lv1 pending, Lv2 in flight, Lv3 running
  std::string_view summary;
  // Whether this device supports it, and why not.
  Capability (*offered)(Device& device);
  // Also works without an intruder (plan.requests == 0: the victim's full throughput) and without a victim (null: the
  // intruder alone, through the same path).
  Observation (*observe)(const Experiment& experiment, const Victim* victim);
  // Not null: the device must be opened with these settings, in a separate process if the driver reads them only once.
  DeviceOptions (*device_options)(const DeviceOptions& usual) = nullptr;
  // The victim is another process: run_victim() runs there while observe() is called here with null.
  bool is_between_processes = false;
};

// Runs only the victim, until `is_over` returns true: for a separate process. `is_over` is called often and must not
// block.
Observation run_victim(const Experiment& experiment, const Victim& victim, const std::function<bool()>& is_over);

std::span<const Mechanism> mechanisms();
// Rejects unknown names with a suggestion.
const Mechanism& mechanism_named(std::string_view name);

// When the intruder's requests are due, starting at 0: exponential distances from the seed, the same for every
// mechanism.
std::vector<std::int64_t> due_times(const ExperimentPlan& plan);

}  // namespace weir::preempt
