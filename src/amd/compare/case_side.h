// One side of `weir compare --queues`: a program's use of hardware queues in one form, from a log, a capture or a timeline.
// Values that a source does not contain are missing with a reason. Makes no comparison.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::amd {

enum class CaseSource : std::uint8_t { log, capture, log_report, timeline };
std::string_view name_of(CaseSource source);

struct CaseQueue {
  enum class Kind : std::uint8_t { compute, copy };
  Kind kind = Kind::compute;
  std::string label;                  // "0x7f8acd200000", "queue 3"
  std::string seen_in;                // "log", "snapshot", "log and snapshot", "timeline"
  std::optional<std::uint64_t> ring;  // base address; for AMD queues
  std::optional<int> pid;             // as in the log: in the program's own namespace
  std::int64_t created_ns = INT64_MIN;
  std::optional<int> priority;  // 0 low, 1 normal, 2 high
  std::optional<std::uint64_t> ring_packets;
  std::optional<std::uint64_t> launches, barriers, streams;
};

struct CaseKernel {
  std::string name;
  std::uint64_t count = 0;
  std::optional<double> total_ns;  // only from timelines
};

// Quantities that are compared by samples.
enum class CaseQuantity : std::uint8_t {
  launch_rate,
  gap,
  backlog,
  barrier_rate,
  copy_rate,
  copied_bytes_rate,
  kernel_duration,
  pause_share
};
inline constexpr std::size_t kCaseQuantities = 8;

struct CaseSamples {
  std::vector<double> values;  // in order of time
  std::string reason;          // why there are none
};

// A hardware slot that a queue was mapped to.
struct CaseSlot {
  std::uint32_t gpu_id = 0;
  int pipe = 0, queue = 0;
  auto operator<=>(const CaseSlot&) const = default;
};

struct CaseSide {
  CaseSource source = CaseSource::log;
  std::string name;                  // as the user gave it
  std::string identity;              // of the input: equal for the same file or folder
  std::vector<std::string> basis;    // the inputs: "log ...", "3 snapshots"
  std::vector<int> pids;             // of processes with launches or queues; ascending
  bool has_unknown_process = false;  // lines without pid
  std::vector<CaseQueue> queues;
  std::string queues_reason;        // why no queue is known; empty if `queues` has all compute queues
  std::string copy_queues_reason;   // why copy-engine queues are not known
  std::vector<CaseSlot> slots;      // ascending, from snapshots
  std::vector<CaseKernel> kernels;  // most launches first
  std::string kernels_reason;
  std::uint64_t launches = 0, unnamed_launches = 0;
  std::optional<std::uint64_t> barriers, copies, copied_bytes, copy_engines;
  std::string barriers_reason, copies_reason;
  std::string launch_time;      // meaning of a launch time: "written by the host", "started on the device"
  std::string pause_time;       // meaning of a pause
  bool is_pause_bound = false;  // pauses are upper bounds: the device may have been busy
  double observed_ns = 0;       // first to last event
  double stretch_ns = 0;        // the width that rates were counted by
  double kernel_time_ns = 0, longest_kernel_ns = 0;  // of all kernels, from timelines: samples omit some
  std::array<CaseSamples, kCaseQuantities> samples;
  std::vector<std::string> notes;

  const CaseSamples& of(CaseQuantity quantity) const { return samples[static_cast<std::size_t>(quantity)]; }
  CaseSamples& of(CaseQuantity quantity) { return samples[static_cast<std::size_t>(quantity)]; }
  std::uint64_t count(CaseQueue::Kind kind) const;
};

// Whether the observation was too short to show slow effects, pauses above all.
bool is_short(const CaseSide& side);

// Totals of a runtime log, read from the log itself or from its report.
struct LogTotals {
  std::uint64_t dispatches = 0, barriers = 0, copies = 0, copied_bytes = 0;
  std::size_t engines = 0;
};
// Fills in values that follow from the totals, once queues and kernels are known, and reasons for those a log lacks.
void take_totals(const LogTotals& totals, CaseSide& side);

class CaseSampler;
// Fills the samples, the observed time and the stretch width from the sampler. Keeps reasons that are already set.
void take_samples(const CaseSampler& sampler, CaseSide& side);

}  // namespace weir::amd
