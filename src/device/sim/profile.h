// The settings of a simulated device with their defaults: read from YAML, changed by name, written back. Knows numbers
// and their ranges; not what the machine does with them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "step/command.h"

namespace weir::sim {

// How a stream gets its hardware queue.
enum class Mapping : std::uint8_t { round_robin, least_referenced, load_based, rotating, fixed };
// The effect of priorities; each level includes those before it.
enum class Priorities : std::uint8_t {
  ignored,
  order,   // kernels that wait to become resident are taken by priority
  blocks,  // free multiprocessors go to the most urgent kernel
  full,    // running blocks of less urgent kernels are set aside
};
// What the nodes of a graph pass through.
enum class GraphQueues : std::uint8_t {
  none,    // nothing: a node starts as soon as its predecessors have ended
  shared,  // the queues of the streams that they were captured on, as other commands do
  own,     // as many queues that take nothing but graphs
};
std::string_view name_of(Mapping mapping);
std::string_view name_of(Priorities priorities);
std::string_view name_of(GraphQueues queues);

// Commands with equal signatures take equally long: the key of a profile's table of durations.
struct Signature {
  CommandKind kind = CommandKind::kernel;
  std::string name;  // of the kernel; of a copy: to_device, to_host or on_device; of a collective: its operation
  ElementType type = ElementType::f32;        // kernels on the device and on the host
  Precision precision = Precision::fp32;      // kernels on the device
  std::array<std::int64_t, kMaxDims> dims{};  // copies and collectives: bytes, in dims[0]
  friend auto operator<=>(const Signature&, const Signature&) = default;
};

// A known duration, from first start to last end, of a launch that has the device to itself.
struct Duration {
  Signature of;
  double ns = 0;
  double held_ns = 0;                          // part of `ns` until its last kernel is launched: it occupies its queue
  std::int64_t blocks = 0;                     // 0: from the cost model
  std::int64_t blocks_per_multiprocessor = 0;  // likewise
  std::optional<double> contention;            // of this kernel; nothing: the profile's
};

struct SimProfile {
  std::string name = "custom";
  std::string model = "simulated device";

  std::int64_t queues = 8;
  Mapping mapping = Mapping::round_robin;
  std::vector<std::int64_t> map;  // for the mapping `fixed`: queue by creation index
  // 1: the head of a queue waits until all commands before it in the queue have ended, not just its own stream's.
  // 2: only where the order of its own stream needs that (see Machine::needs_barrier).
  std::int64_t barrier = 0;
  GraphQueues graph_queues = GraphQueues::none;
  std::int64_t record_blocks = 0;  // 1: a record blocks its queue until its stream's running command has ended
  // Queues for each kind of copies, for host functions and for collectives; 0: they wait in their stream's queue.
  std::int64_t engine_queues = 0;
  std::int64_t host_in_queue = 0;  // 1: host functions wait in their stream's queue all the same
  std::int64_t queue_depth = 1022;
  std::int64_t max_streams = 128;
  std::int64_t multiprocessors = 132;
  std::int64_t slots_per_multiprocessor = 32;
  std::int64_t resident_kernels = 128;
  struct {
    std::int64_t to_device = 1, to_host = 1, on_device = 1;
  } copy_engines;
  std::int64_t host_threads = 8;
  Priorities priorities = Priorities::blocks;
  std::int64_t priority_levels = 6;

  // Cost of calls on the thread that submits.
  struct {
    std::int64_t launch_ns = 0, copy_ns = 0, host_function_ns = 0, collective_ns = 0, record_ns = 0, wait_ns = 0,
                 graph_ns = 0, finish_ns = 0, clock_ns = 1;
  } host;
  // Latencies of the device.
  struct {
    std::int64_t doorbell_ns = 0, launch_ns = 0, stream_gap_ns = 0, event_gap_ns = 0, switch_ns = 0,
                 switch_per_doubling_ns = 0, graph_gap_ns = 0, graph_node_ns = 0, copy_latency_ns = 0,
                 host_function_latency_ns = 0, collective_latency_ns = 0, preempt_save_ns = 0, preempt_restore_ns = 0;
  } device;
  // FLOP/s by precision, bytes/s; host_*: per host thread.
  struct {
    double fp32 = 50e12, tf32 = 300e12, fp16 = 600e12, bf16 = 600e12;
    double memory_bytes = 4e12, to_device_bytes = 50e9, to_host_bytes = 50e9, on_device_bytes = 2e12,
           link_bytes = 300e9;
    double host_flop = 10e9, host_bytes = 10e9;
  } rates;
  // Share of the rates that kernels of the cost model reach.
  struct {
    double flop = 1, memory = 1;
  } efficiency;

  std::int64_t kernel_ns = 2000;  // shortest duration of a kernel in the cost model
  double scale = 1;               // factor on all kernels that are not timed by a clock (spin, stamp, hold, toil)
  double contention = 0;          // relative slowdown of a block while others fill the rest of the device
  double room = 1;                // share of a kernel's blocks that occupy the device; the others end at once
  double jitter = 0;              // relative standard deviation of durations
  std::int64_t seed = 1;
  std::int64_t timer_ns = 1;                  // granularity of the moments that probe kernels write
  double foreign_load = 0;                    // share of time taken by other users' kernels
  std::int64_t foreign_slice_ns = 2'000'000;  // average length of such a period
  std::int64_t memory_bytes = std::int64_t{80} << 30;
  std::vector<Precision> precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
  std::vector<Duration> durations;

  std::vector<std::pair<std::string, std::string>> overrides;  // as applied, for display; not in the profile's text
};

// Queues of streams and of graphs; those of engines are numbered from here.
constexpr std::int64_t packet_queues(const SimProfile& profile) {
  return profile.graph_queues == GraphQueues::own ? 2 * profile.queues : profile.queues;
}

// Reads YAML; missing keys keep the defaults above. `name` stands for the file in messages.
SimProfile load_profile(std::string_view text, const std::string& name);
// A built-in profile (h200), or a file (anything with a '/' or ending in .yaml or .yml).
SimProfile profile_named(const std::string& name_or_path);
std::vector<std::string> profile_names();
// Sets one setting, as --sim does: queues, mapping, map (0,1,1), copy_engines.to_host, host.launch_ns, rates.bf16 ...
void apply(SimProfile& profile, const std::string& key, const std::string& value);
// Rejects settings that contradict each other.
void check(const SimProfile& profile);
// Writes YAML that reads back as the same profile.
std::string to_yaml(const SimProfile& profile);

// One numeric setting, for tables and documentation.
struct Setting {
  std::string name;  // dotted: host.launch_ns
  std::string summary;
  double lowest = 0;
  double highest = 0;
  std::int64_t& (*whole)(SimProfile&) = nullptr;
  double& (*real)(SimProfile&) = nullptr;
};
std::span<const Setting> settings();

// Profiles by name as compiled into the program (cmake/profiles.cmake).
struct EmbeddedProfile {
  const char* name;
  const char* text;
};
std::span<const EmbeddedProfile> embedded_profiles();

}  // namespace weir::sim
