// One side of `weir amd compare`: what a log, a capture or a timeline says of a program's use of hardware queues, in
// one form. Whatever a source does not say is missing with a reason. Makes no comparison.
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
  std::optional<std::uint64_t> ring;  // base; of AMD's queues
  std::optional<int> pid;             // as the log has it: of the program's own namespace
  std::int64_t created_ns = INT64_MIN;
  std::optional<int> priority;  // 0 low, 1 normal, 2 high
  std::optional<std::uint64_t> ring_packets;
  std::optional<std::uint64_t> launches, barriers, streams;
};

struct CaseKernel {
  std::string name;
  std::uint64_t count = 0;
  std::optional<double> total_ns;  // of timelines
};

// What is compared by samples.
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
  std::vector<double> values;  // in the order of time
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
  std::string identity;              // of the input: two sides that have the same are the same file or folder
  std::vector<std::string> basis;    // what was read: "log ...", "3 snapshots"
  std::vector<int> pids;             // of processes that launched or had queues; ascending
  bool has_unknown_process = false;  // lines without pid
  std::vector<CaseQueue> queues;
  std::string queues_reason;        // why no queue is known; empty where `queues` is all there is of compute queues
  std::string copy_queues_reason;   // why queues of copy engines are not known
  std::vector<CaseSlot> slots;      // ascending, of snapshots
  std::vector<CaseKernel> kernels;  // most launches first
  std::string kernels_reason;
  std::uint64_t launches = 0, unnamed_launches = 0;
  std::optional<std::uint64_t> barriers, copies, copied_bytes, copy_engines;
  std::string barriers_reason, copies_reason;
  std::string launch_time;      // what the moment of a launch is: "written by the host", "started on the device"
  std::string pause_time;       // what a pause is
  bool is_pause_bound = false;  // pauses are at most so long: the device may have been busy in them
  double observed_ns = 0;       // first to last event
  double stretch_ns = 0;        // that rates were counted by
  double kernel_time_ns = 0, longest_kernel_ns = 0;  // of all kernels, of timelines: samples leave some out
  std::array<CaseSamples, kCaseQuantities> samples;
  std::vector<std::string> notes;

  const CaseSamples& of(CaseQuantity quantity) const { return samples[static_cast<std::size_t>(quantity)]; }
  CaseSamples& of(CaseQuantity quantity) { return samples[static_cast<std::size_t>(quantity)]; }
  std::uint64_t count(CaseQueue::Kind kind) const;
};

// Less was observed than says anything of what goes on slower than that; pauses above all.
bool is_short(const CaseSide& side);

// What a runtime log adds up to, read from itself or from its report.
struct LogTotals {
  std::uint64_t dispatches = 0, barriers = 0, copies = 0, copied_bytes = 0;
  std::size_t engines = 0;
};
// Fills in what follows from them, after queues and kernels are known, and the reasons for what a log does not show.
void take_totals(const LogTotals& totals, CaseSide& side);

class CaseSampler;
// Fills the samples, the observed time and the width of stretches from what was taken. Reasons stay where they are set.
void take_samples(const CaseSampler& sampler, CaseSide& side);

}  // namespace weir::amd
