// The part of libweir_cupti.so that `weir race` talks to: counts the commands of each thread, does to them what the
// plan says (cuda_race_acts.h), and writes the log of calls. Never makes a program fail: what cannot be done is noted.
#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>
#include <unordered_set>

#include "submit/inject/cuda_race_acts.h"
#include "submit/inject/cuda_race_checkpoint.h"
#include "submit/inject/cuda_race_driver.h"
#include "submit/inject/cuda_race_streams.h"
#include "submit/inject/cupti_calls.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/cupti_subscription.h"

// The header says the newest versions where this name stands.
#undef cuGraphExecUpdate

namespace weir::inject {
namespace {

using race_format::Access;
using race_format::Entry;
using race_format::kNone;
using Kind = race_format::Kind;
using Role = CudaFunction::Role;

constexpr std::size_t kMostKept = 64;

// Graphs that were captured; protected by the run's mutex.
std::unordered_set<std::uint64_t>& captured_graphs() noexcept {
  static auto& kGraphs = *new std::unordered_set<std::uint64_t>;
  return kGraphs;
}
bool g_was_graph_noted = false;

Kind race_kind(const CudaFunction& function) noexcept {
  switch (function.kind) {
    case record::Kind::launch:
      return Kind::kernel;
    case record::Kind::copy:
    case record::Kind::synchronous_copy:
      return Kind::copy;
    case record::Kind::memset:
      return Kind::set;
    case record::Kind::graph_launch:
      return Kind::graph_launch;
    case record::Kind::host_function:
      return Kind::host_function;
    case record::Kind::memory_operation:
      return Kind::memory_operation;
    case record::Kind::event_record:
      return Kind::event_record;
    case record::Kind::stream_wait_event:
      return Kind::stream_wait_event;
    case record::Kind::event_synchronize:
      return Kind::event_synchronize;
    case record::Kind::stream_synchronize:
      return Kind::stream_synchronize;
    default:
      return Kind::context_synchronize;
  }
}

bool is_query(const CudaFunction& function) noexcept {
  return function.id == CUPTI_DRIVER_TRACE_CBID_cuEventQuery || function.id == CUPTI_DRIVER_TRACE_CBID_cuStreamQuery ||
         function.id == CUPTI_DRIVER_TRACE_CBID_cuStreamQuery_ptsz;
}
bool is_host_wait(const CudaFunction& function) noexcept {
  return function.kind == record::Kind::event_synchronize || function.kind == record::Kind::stream_synchronize ||
         function.kind == record::Kind::context_synchronize;
}
bool is_stream_order(const CudaFunction& function) noexcept {
  return function.kind == record::Kind::event_record || function.kind == record::Kind::stream_wait_event;
}

CUcontext context_of_call(const CUpti_CallbackData& data) noexcept {
  CUcontext context = data.context;
  if (context == nullptr && race_driver().current(&context) != CUDA_SUCCESS) context = nullptr;
  return context;
}

RaceStream stream_of_call(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  return find_race_stream(mine, stream_of(function, data.functionParams), context_of_call(data));
}

// Compiling our kernels takes the driver milliseconds, which are better spent before the program is under way.
void load_kernels_once(CUcontext context) {
  static std::atomic<CUcontext> loaded{nullptr};
  if (context == nullptr || loaded.exchange(context) == context) return;
  const Visiting visit(cuda_driver(), context);
  RaceKernels kernels;
  const std::string reason = visit ? find_race_kernels(context, kernels) : "its context cannot be entered";
  if (!reason.empty()) note_race("delays and hashes are left out: " + reason);
}

void command_begins(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  if (!claim_race()) return;
  RaceRun& run = race_run();
  {
    const std::lock_guard lock(run.mutex);
    mine.name = {number_race_thread(run, mine), ++mine.sequence};
  }
  mine.orders = run.plan.orders_of(mine.name);
  mine.stream = stream_of_call(mine, function, data);
  mine.capture = race_capture_of(mine.stream.handle, mine.stream.context);
  if (run.plan.has_kernels()) load_kernels_once(mine.stream.context);
  if (run.log.is_open() || (mine.orders != nullptr && mine.orders->hashes))
    find_accesses(function, data.functionParams, mine.capture == RaceCapture::captured, mine.accesses);
  act_before(mine);
}

Entry entry_of(const RaceThread& mine, Kind kind) {
  Entry entry{};
  entry.kind = static_cast<std::uint8_t>(kind);
  entry.thread = mine.number;
  entry.stream = kNone;
  entry.time_ns = mine.began_ns;
  return entry;
}

void command_ends(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data, bool has_failed) {
  if (mine.name.thread == 0) return;
  RaceRun& run = race_run();
  if (run.log.is_open()) {
    Entry entry = entry_of(mine, race_kind(function));
    entry.sequence = mine.name.sequence;
    entry.stream = mine.stream.number;
    entry.device = mine.stream.device;
    if (has_failed) entry.flags |= race_format::kFailed;
    if (mine.capture == RaceCapture::captured) entry.flags |= race_format::kCaptured;
    if (mine.accesses.is_synchronous) entry.flags |= race_format::kSynchronous;
    if (function.kind == record::Kind::graph_launch) entry.object = object_of(function, data.functionParams, false);
    const std::lock_guard lock(run.mutex);
    if (function.kind == record::Kind::launch && data.symbolName != nullptr)
      entry.name = kernel_text(run, data.symbolName);
    run.log.add(entry, mine.accesses.list);
  }
  act_behind(mine, has_failed);
  mine.name = {};
  mine.orders = nullptr;
}

// Records and waits in a stream, and waits of the host. `has_failed` is false.
void order_ends(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data, Kind kind) {
  RaceRun& run = race_run();
  if (!claim_race_is_ours()) return;
  Entry entry = entry_of(mine, kind);
  if (function.object == CudaFunction::Object::handle) entry.object = object_of(function, data.functionParams, false);
  if (function.stream != CudaFunction::Stream::none) {
    const RaceStream stream = stream_of_call(mine, function, data);
    entry.stream = stream.number;
    entry.device = stream.device;
    // After a wait for an event of a captured stream this one is captured too.
    if (is_stream_order(function) && race_capture_of(stream.handle, stream.context) == RaceCapture::captured)
      entry.flags |= race_format::kCaptured;
  }
  const std::lock_guard lock(run.mutex);
  if (is_stream_order(function)) entry.thread = number_race_thread(run, mine);
  if (entry.thread != 0) return run.log.add(entry, {});
  // A thread that only waits must not change the numbers of those that submit.
  if (mine.kept.size() == kMostKept) mine.kept.erase(mine.kept.begin());
  mine.kept.push_back(entry);
}

void add_context_wait(RaceRun& run, RaceThread& mine) {
  const Entry entry = entry_of(mine, Kind::context_synchronize);
  if (entry.thread != 0)
    run.log.add(entry, {});
  else if (mine.kept.size() < kMostKept)
    mine.kept.push_back(entry);
}

void memory_ends(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  const RaceBlock change = block_of(function, data.functionParams);
  if (!change.is_one) return;
  RaceRun& run = race_run();
  std::uint32_t stream = kNone;
  if (function.stream != CudaFunction::Stream::none && claim_race_is_ours())
    stream = stream_of_call(mine, function, data).number;
  const std::lock_guard lock(run.mutex);
  const std::uint32_t thread = mine.number == 0 ? 1 : mine.number;
  if (!change.is_release) return add_block(run, change.block, thread, stream);
  const auto released = run.memory.remove(change.block.begin);
  Entry entry = entry_of(mine, Kind::release);
  entry.thread = thread;
  entry.stream = stream;
  if (released && released->is_host) entry.flags = race_format::kHost;
  const Access access{change.block.begin, released ? released->bytes : 0, 0, 0};
  run.log.add(entry, {&access, 1});
  if (change.waits_for_device) add_context_wait(run, mine);
}

void capture_changes(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  const bool begins = function.role == Role::capture_begins;
  // Both kinds of call begin with the stream.
  CUstream handle = *static_cast<const CUstream*>(data.functionParams);
  if (handle == nullptr) handle = function.is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (!claim_race()) return;
  RaceRun& run = race_run();
  const RaceStream stream = find_race_stream(mine, handle, context_of_call(data));
  const std::lock_guard lock(run.mutex);
  Entry entry = entry_of(mine, begins ? Kind::capture_begins : Kind::capture_ends);
  entry.thread = number_race_thread(run, mine);
  entry.stream = stream.number;
  if (!begins) {
    CUgraph* const graph = static_cast<const cuStreamEndCapture_params*>(data.functionParams)->phGraph;
    if (graph != nullptr) entry.object = reinterpret_cast<std::uint64_t>(*graph);
    captured_graphs().insert(entry.object);
  }
  run.log.add(entry, {});
}

void graph_ends(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  std::uint64_t executable = 0, graph = 0;
  if (function.role == Role::graph_made) {
    const auto& made = *static_cast<const cuGraphInstantiateWithFlags_params*>(data.functionParams);
    if (made.phGraphExec != nullptr) executable = reinterpret_cast<std::uint64_t>(*made.phGraphExec);
    graph = reinterpret_cast<std::uint64_t>(made.hGraph);
  } else if (function.id == CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate ||
             function.id == CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2) {
    const auto& changed = *static_cast<const cuGraphExecUpdate_v2_params*>(data.functionParams);
    executable = reinterpret_cast<std::uint64_t>(changed.hGraphExec);
    graph = reinterpret_cast<std::uint64_t>(changed.hGraph);
  }
  if (executable == 0) return;
  RaceRun& run = race_run();
  bool is_dark = false;
  {
    const std::lock_guard lock(run.mutex);
    Entry entry = entry_of(mine, Kind::graph_made);
    entry.thread = mine.number == 0 ? 1 : mine.number;
    entry.object = executable;
    entry.other = graph;
    run.log.add(entry, {});
    is_dark = !captured_graphs().contains(graph) && !std::exchange(g_was_graph_noted, true);
  }
  if (is_dark) note_race("what a graph touches is not known where it was made of nodes and not captured");
}

void stream_is_made(const CudaFunction& function, const CUpti_CallbackData& data) {
  if (function.id == CUPTI_DRIVER_TRACE_CBID_cuStreamCreate) {
    const auto& made = *static_cast<const cuStreamCreate_params*>(data.functionParams);
    if (made.phStream != nullptr) race_stream_made(*made.phStream, made.Flags);
  } else if (function.id == CUPTI_DRIVER_TRACE_CBID_cuStreamCreateWithPriority) {
    const auto& made = *static_cast<const cuStreamCreateWithPriority_params*>(data.functionParams);
    if (made.phStream != nullptr) race_stream_made(*made.phStream, made.flags);
  }
}

void call_begins(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  mine.began_ns = monotonic_ns();
  mine.name = {};
  mine.orders = nullptr;
  mine.accesses.list.clear();
  mine.accesses.is_synchronous = false;
  if (function.role == Role::capture_begins) race_capture_changes(1);
  if (function.role == Role::stream_ends) return race_stream_ends(stream_of(function, data.functionParams));
  if (function.role == Role::context_ends) {
    forget_race_events();
    forget_race_kernels();
    forget_kernels_parameters();
    forget_race_streams();
    const std::lock_guard lock(race_run().mutex);
    return race_run().memory.clear();
  }
  if (record::is_command(function.kind)) command_begins(mine, function, data);
}

void call_ends(RaceThread& mine, const CudaFunction& function, const CUpti_CallbackData& data) {
  const bool has_failed = *static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS;
  if (function.role == Role::capture_ends || (function.role == Role::capture_begins && has_failed))
    race_capture_changes(-1);
  if (record::is_command(function.kind)) return command_ends(mine, function, data, has_failed);
  if (function.role == Role::names_end) return forget_kernels_parameters();
  if (function.role == Role::capture_ends || (function.role == Role::capture_begins && !has_failed))
    return capture_changes(mine, function, data);
  if (has_failed) return;
  if (is_about_graphs(function)) return graph_ends(mine, function, data);
  if (is_stream_order(function) || is_host_wait(function)) return order_ends(mine, function, data, race_kind(function));
  if (is_query(function))
    return order_ends(
        mine, function, data,
        function.stream == CudaFunction::Stream::none ? Kind::event_synchronize : Kind::stream_synchronize);
  stream_is_made(function, data);
  memory_ends(mine, function, data);
}

void on_race_call(const CudaFunction& function, const CUpti_CallbackData& data) {
  if (!is_racing() || Unrecorded::is_here()) return;
  const Unrecorded unrecorded;
  try {
    RaceThread* const mine = race_thread();
    if (mine == nullptr) return;
    if (data.callbackSite == CUPTI_API_ENTER)
      call_begins(*mine, function, data);
    else
      call_ends(*mine, function, data);
  } catch (const std::exception&) {
    note_race("a call was not followed: out of memory");
  }
}

// All but what only matters where something hangs.
bool is_race_call(const CudaFunction& function) noexcept {
  return function.kind != record::Kind::event_create && function.kind != record::Kind::event_destroy;
}

void finish() {
  if (!is_racing()) return;
  try {
    write_checkpoints(true);
    if (claim_race_is_ours()) note_what_was_not_reached();
  } catch (const std::exception&) {
    note_race("the end was not written: out of memory");
  }
  finish_race();
  stop_racing();
}

}  // namespace

void start_race() {
  if (!prepare_race()) return;
  std::string reason;
  if (const char* const missing = bind_race_driver(); missing != nullptr)
    reason = std::string("the CUDA driver lacks ") + missing;
  if (reason.empty()) reason = follow_calls(on_race_call, is_race_call);
  std::atexit(finish);
  if (reason.empty()) return;
  std::fprintf(stderr, "weir: the program runs undisturbed: %s\n", reason.c_str());
  note_race("nothing is done: " + reason);
}

}  // namespace weir::inject
