// The fake GPU's inside, shared by its two halves: fake_gpu.cpp runs streams, fake_gpu_table.cpp fills the table.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/fake_gpu.h"
#include "device/gpu/activity.h"
#include "support/device_function.h"

namespace weir {

// The opaque handles of the table are these.
struct GpuEventHandle {
  std::uint64_t recorded = 0;  // version of the last record call
  std::uint64_t done = 0;      // version that has been reached
  double time_ms = 0;
  bool has_timing = true;
  int capture = 0;  // number of the capture that it was last recorded in; 0 outside of one
};
struct GpuStreamHandle;
struct GpuFunctionHandle : testing::DeviceFunction {};
struct GpuContextHandle {
  int number = 0;
};
struct GpuModuleHandle {};
struct GpuPartHandle {
  std::uint64_t units = 0;
};
struct GpuBlasHandleHandle {
  GpuStream stream = nullptr;
};
struct GpuCommHandle {
  int number = 0, ranks = 0;
  std::deque<const void*> sent;  // to itself, by a rank that is alone
};

namespace fake_gpu {

// One thing in a stream: work, or a record (event with version), or a wait for one, or a wait for a word in memory.
struct Operation {
  enum class Kind { work, record, wait, wait_value } kind = Kind::work;
  std::function<int()> work;
  GpuEvent event = nullptr;
  std::uint64_t version = 0;  // of the event, or what the word has to reach
  std::uint32_t* word = nullptr;
};

struct Capture {
  std::vector<std::pair<GpuStream, Operation>> operations;
  std::set<GpuStream> open;  // forked and not joined; the origin is not in it
};

}  // namespace fake_gpu

struct GpuStreamHandle {
  int number = 0;
  int context = 0;
  GpuPart part = nullptr;
  std::deque<fake_gpu::Operation> pending;
  fake_gpu::Capture* capture = nullptr;
};
struct GpuGraphHandle {
  fake_gpu::Capture capture;
};
struct GpuGraphExecHandle {
  fake_gpu::Capture capture;
};

namespace fake_gpu {

inline constexpr int kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kBadDevice = 101, kNotReady = 600,
                     kDeadlock = 999;
inline constexpr int kUnjoined = 904, kIsolated = 905;

// The fake profiler's inside.
struct Activity {
  bool is_open = false;
  int starts = 0, stops = 0, made = 0;
  std::uint32_t correlation = 0;
  std::vector<GpuActivityRecord> pending, arrived;
  std::vector<GpuActivityRecord> incomplete;
  std::uint64_t dropped = 0;
};

struct State {
  Settings settings;
  std::mutex mutex;
  std::uint64_t steps = 0;
  double now_ms = 0;
  int broken = 0;  // an error that sticks
  int launches = 0, runs = 0;
  std::vector<int> priorities;
  std::set<GpuPart> parts;
  int parts_made = 0, parts_orphaned = 0;  // destroyed before their streams
  std::vector<std::uint64_t> confined_to;
  std::uint64_t used_bytes = 0;
  std::map<void*, std::size_t> memory, host_memory;
  std::set<GpuStream> streams;
  std::set<GpuEvent> events;
  std::map<std::string, std::unique_ptr<GpuFunctionHandle>> functions;
  std::map<GpuEvent, Capture*> captured_by;
  std::unique_ptr<Capture> capture;
  int captures = 0, graph_launches = 0;
  int comms = 0, streams_made = 0, comms_made = 0;
  std::vector<std::string> collective_calls;
  GpuStream origin = nullptr;
  int contexts = 0, modules = 0, graphs = 0, execs = 0, handles = 0;
  std::deque<GpuContextHandle> contexts_made;  // one for every retain
  GpuModuleHandle module;
  Activity activity;
};

State& state();
// Number of the context that is current in this thread; 0 without one.
int& current_context();
using Lock = std::lock_guard<std::mutex>;

// Puts an operation into a stream, or into the capture that the stream takes part in. The lock is held.
int enqueue(GpuStream stream, Operation operation);
int enqueue_work(GpuStream stream, std::function<int()> work);
// The same for what the profiler sees.
int enqueue_seen(GpuStream stream, GpuActivityRecord::Kind kind, std::function<int()> work);
const GpuActivity* activity(std::string* reason);
// What a capture of a product holds, and how to launch it again.
int graph_kernels(GpuGraph graph, std::vector<GpuRecordedKernel>* kernels);
int launch_recorded(const GpuRecordedKernel& kernel, GpuStream stream);
// Entries for streams on a part of the device; fake_gpu_parts.cpp.
void offer_parts(GpuApi& table, const Settings& settings);
// Runs a captured graph to its end.
int run_graph(const Capture& capture);

// Entries of the table.
int event_record(GpuEvent event, GpuStream stream);
int stream_wait(GpuStream stream, GpuEvent event, unsigned flags);
int stream_wait_value(GpuStream stream, GpuPointer at, std::uint32_t value, unsigned flags);
int stream_synchronize(GpuStream stream);
int synchronize();
int event_synchronize(GpuEvent event);
int event_elapsed(float* milliseconds, GpuEvent from, GpuEvent to);
int capture_begin(GpuStream stream, int mode);
int capture_end(GpuStream stream, GpuGraph* graph);

}  // namespace fake_gpu
}  // namespace weir
