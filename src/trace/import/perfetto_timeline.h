// Builds the parts of a timeline from the slices of a Perfetto trace: what tracks and annotations of rocprofv3 and
// ROCm's system profiler say. Knows what slices mean, not how they are written.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/import/importer.h"

namespace weir {

enum class PerfettoCategory : std::uint8_t { other, kernel, copy, call, range };

// An annotation that means something to a timeline.
enum class PerfettoKey : std::uint8_t {
  agent,
  source_agent,
  target_agent,
  stream,
  queue,
  correlation,
  bytes,
  begin,
  end,
  thread,
  block,
  grid,
  none
};

// "rocm_kernel_dispatch" (the system profiler) and "kernel_dispatch" (rocprofv3).
PerfettoCategory perfetto_category(std::string_view name) noexcept;
bool is_of_system_profiler(std::string_view category) noexcept;
PerfettoKey perfetto_key(std::string_view name) noexcept;

struct PerfettoSlice {
  std::uint64_t at = 0;  // position in the file
  std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
  std::uint32_t name = kNoName;
  PerfettoCategory category = PerfettoCategory::other;
  bool is_of_system_profiler = false;
  bool has_gpu_number = false;  // agents are numbered among GPUs: "GPU-0", not "Agent-1"
  std::uint64_t track = 0;
  std::uint64_t flow = 0;  // 0: none
  std::uint32_t known = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(PerfettoKey::none)> values{};

  void set(PerfettoKey key, std::uint64_t value) noexcept {
    known |= 1U << static_cast<unsigned>(key);
    values[static_cast<std::size_t>(key)] = value;
  }
  // "Agent-2": 2; "(64,2,1)": 128
  void set(PerfettoKey key, std::string_view text) noexcept;
  std::optional<std::uint64_t> get(PerfettoKey key) const noexcept {
    if ((known >> static_cast<unsigned>(key) & 1U) == 0) return std::nullopt;
    return values[static_cast<std::size_t>(key)];
  }
  // Its length by its annotations; empty where they do not have it.
  std::optional<std::int64_t> noted_length() const noexcept;
};

// What a track's descriptor says.
struct PerfettoTrack {
  std::uint64_t parent = 0;
  std::optional<std::int64_t> process_id, thread_id;
  std::optional<std::uint64_t> agent, stream, queue;  // from its name

  // "COMPUTE AGENT [1] STREAM [0] (GPU)", "STREAM [" 3 "]", "GPU Kernel Dispatch [0] Queue 1"
  void set_name(std::string_view name) noexcept;
};

class PerfettoTimeline {
 public:
  PerfettoTimeline(const TraceFile& file, TimelineBuilder& to) : file_(file), to_(to) {}

  void describe(std::uint64_t track, const PerfettoTrack& description);
  // A slice that is neither a command, a call nor a range.
  void leave_out(std::string_view category);
  void add(const PerfettoSlice& slice);
  // Call once, at the end of the file. `what_else`: what the file holds besides slices, for the message where it holds
  // nothing of use.
  void finish(const std::string& what_else);

 private:
  struct Copy {
    PerfettoSlice slice;
    std::uint16_t process = 0;
  };

  const PerfettoTrack& track_of(std::uint64_t track) const;
  std::uint16_t process_of(std::uint64_t track);
  void add_kernel(const PerfettoSlice& slice, std::uint16_t process);
  void add_copy(const Copy& copy);
  void add_command(const PerfettoSlice& slice, std::uint16_t process, std::int64_t device, TraceCommand command);
  std::int64_t device_of_copy(const Copy& copy);
  std::string left_out_text() const;

  const TraceFile& file_;
  TimelineBuilder& to_;
  std::unordered_map<std::uint64_t, PerfettoTrack> tracks_;
  std::unordered_map<std::int64_t, std::uint16_t> processes_;   // by their id in the trace
  std::map<std::string, std::uint64_t, std::less<>> left_out_;  // slices by category
  std::vector<Copy> copies_;                                    // until it is known what runs kernels
  struct StreamUser {
    std::int64_t device = 0;
    bool is_only = true;
  };
  std::unordered_map<std::uint64_t, StreamUser> stream_users_;  // devices whose kernels ran on a stream
  std::map<std::int64_t, std::uint64_t> kernel_devices_;        // commands by device
  std::uint64_t cpus_ = 0;                                      // agents of copies that are none of the GPUs
  std::size_t commands_ = 0, calls_ = 0, ranges_ = 0;
};

}  // namespace weir
