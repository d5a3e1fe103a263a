// What a trace says of why everything happened when it did: which call of the host followed which, what each submitted
// or waited for, what each command came after, and how long each took by itself. Made from a timeline of one process or
// of several on one clock; runs nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/sim/profile.h"
#include "measure/timeline.h"

namespace weir::advise {

inline constexpr std::uint32_t kNone = UINT32_MAX;

// What runs a command; commands of one engine run one after the other.
enum class Engine : std::uint8_t { kernels, to_device, to_host, link, host };
inline constexpr std::size_t kEngines = 5;

// Each latency counts from a cause to the start of the command, if that cause is the last one.
struct ReplayCommand {
  std::uint32_t span = kNone;    // in the timeline
  std::uint32_t action = kNone;  // that submits it; kNone: it is there from `arrival_ns` on
  std::int64_t arrival_ns = 0;
  double work_ns = 0;              // its duration without others beside it
  double fill = 1;                 // the part of the device's multiprocessors that it can occupy
  std::uint32_t slowdown = kNone;  // in ReplayModel::slowdowns
  std::uint16_t stream = 0;
  std::uint16_t device = 0;
  Engine engine = Engine::kernels;
  bool is_in_graph = false;       // one launch submits it together with others: it passes through no queue
  bool has_own_queue = false;     // no other stream's commands are in its queue
  bool gives_way = false;         // to more urgent ones: it has more blocks than the device holds at a time
  std::uint32_t meeting = kNone;  // in ReplayModel::meetings: work_ns counts from the moment when all are there
  std::int64_t launch_ns = 0, stream_ns = 0, edge_ns = 0;
  bool is_after_call = false;               // launch_ns counts from the call's return, not from its beginning
  std::uint32_t first_edge = 0, edges = 0;  // in ReplayModel::edges: commands that must have ended
};

// Whether its stream gets a queue at the end of its call. A wait for another stream comes before the call, and gets it.
inline bool gets_queue_late(const ReplayCommand& command) { return command.is_after_call && command.edges == 0; }

// A collective, which begins in earnest when the last of its ranks has started it.
struct Meeting {
  std::vector<std::uint32_t> commands;
};

// A call of a host thread that matters to the device.
struct HostAction {
  std::uint32_t call = kNoCall;  // in the timeline
  std::uint32_t thread = 0;
  std::int64_t own_ns = 0;       // what the thread does for itself before it
  std::int64_t call_ns = 0;      // in the call, without waiting
  std::uint32_t after = kNone;   // the action of another thread that wakes this one
  std::int64_t after_ns = 0;     // from that one's end
  std::int64_t arrival_ns = -1;  // when the data came that the thread waited for, from the origin; -1: it did not wait
  std::int64_t arrived_ns = 0;   // what the thread does for itself after that; own_ns is before
  std::uint32_t first_command = 0, commands = 0;  // in ReplayModel::submitted
  std::uint32_t first_wait = 0, waits = 0;        // in ReplayModel::awaited
  std::int64_t wake_ns = 0;                       // from the end of the last awaited command to the call's return
};

struct ReplayModel {
  std::vector<ReplayCommand> commands;  // by start
  std::vector<std::uint32_t> edges;
  // How much longer a kernel takes beside 0, 1, 2 ... others, as far as the trace has it.
  std::vector<std::vector<double>> slowdowns;
  std::vector<HostAction> actions;                // by thread, then by start
  std::vector<std::uint32_t> thread_begin;        // by thread, one more at the end: places in `actions`
  std::vector<std::uint32_t> submitted, awaited;  // commands
  std::vector<Meeting> meetings;
  std::vector<std::int32_t> urgency;  // by stream: what is more urgent gets the device first
  std::uint32_t streams = 0;
  std::uint16_t devices = 0;
  std::int64_t origin_ns = 0;          // times of the replay count from here
  std::int64_t observed_ns = 0;        // from there to the last end of a command
  std::vector<std::uint32_t> step_of;  // by command; kNone outside of all; empty where the trace marks no steps
  std::uint32_t steps = 0;
  sim::SimProfile queues;  // how streams share hardware queues: its queues and mapping are used

  // Starts that are later than all known causes, with their usual latencies, explain.
  std::size_t late_commands = 0;
  double late_ns = 0;
  std::size_t inferred_edges = 0;  // by time alone, where the source does not record waits
  std::size_t uncalled = 0;        // commands whose call the trace does not have
};

// Adds a kernel to those that run on a device, in the order in which they get it: behind the others, but before less
// urgent ones that give way. Returns its place.
std::size_t join_running(const ReplayModel& model, const std::vector<std::int32_t>& urgency,
                         std::vector<std::uint32_t>& running, std::uint32_t command);

// How fast kernels go on that run on one device at the same time, in that order: the first takes what it can fill, the
// next of what is left. 1: as fast as alone. `beyond`: how much of their speed together more kernels gain
// than ever ran together in the trace: 0 as much as they are more, 1 nothing.
void share_device(const ReplayModel& model, std::span<const std::uint32_t> running, double beyond,
                  std::vector<double>& rates);

// `queues`: as the program ran. Rejects a timeline without commands that have times.
ReplayModel replay_model(const Timeline& timeline, const sim::SimProfile& queues);

}  // namespace weir::advise
