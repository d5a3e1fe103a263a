// The fake GPU's function table: memory, kernels by name, BLAS, and how to start over.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "device/fake_gpu_state.h"
#include "kernel/gemm.h"

namespace weir::fake_gpu {
namespace {

int run_kernel(const Kernel& kernel, const KernelCall& call) {
  State& s = state();
  if (s.runs++ == s.settings.fail_run) return s.settings.error;
  kernel.reference(call);
  return 0;
}

int launch(GpuFunction function, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned,
           GpuStream stream, void** parameters, void**) {
  const Lock lock(state().mutex);
  State& s = state();
  if (s.launches++ == s.settings.fail_launch) return s.settings.error;
  if (grid == 0 || block == 0 || block > 1024) return kInvalid;
  return enqueue_seen(stream, GpuActivityRecord::Kind::kernel,
                      [function, call = testing::kernel_call(*function, parameters[0])] {
                        return run_kernel(*function->kernel, call);
                      });
}

// The lock is held while `body` runs: one that calls the table hangs, as it may on a real device.
int launch_host(GpuStream stream, GpuHostCall* call) {
  const Lock lock(state().mutex);
  return enqueue_work(stream, [call] { return call->body(*call), 0; });
}

int stream_write(GpuStream stream, GpuPointer to, std::uint32_t value, unsigned) {
  const Lock lock(state().mutex);
  return enqueue_work(stream, [=] {
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(to)).store(value, std::memory_order_release);  // the host looks
    return 0;
  });
}

int function_get(GpuFunction* function, GpuModule, const char* name) {
  const Lock lock(state().mutex);
  const auto found = testing::device_function(name);
  if (!found) return 500;
  auto& known = state().functions[name];
  if (known == nullptr) known = std::make_unique<GpuFunctionHandle>(GpuFunctionHandle{*found});
  *function = known.get();
  return 0;
}

int copy(void* to, const void* from, std::size_t bytes, GpuStream stream) {
  const Lock lock(state().mutex);
  return enqueue_seen(stream, GpuActivityRecord::Kind::copy, [=] { return std::memcpy(to, from, bytes), 0; });
}

template <class T>
int fill(GpuPointer to, T value, std::size_t count, GpuStream stream) {
  const Lock lock(state().mutex);
  return enqueue_seen(stream, GpuActivityRecord::Kind::memset,
                      [=] { return std::fill_n(reinterpret_cast<T*>(to), count, value), 0; });
}

// The lock is held.
int allocate(std::map<void*, std::size_t>& kept, void** pointer, std::size_t bytes) {
  *pointer = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  kept[*pointer] = bytes;
  return 0;
}

int release(std::map<void*, std::size_t>& kept, void* pointer) {
  if (kept.erase(pointer) == 0) return kInvalid;
  std::free(pointer);
  return 0;
}

const GpuBlas* blas(std::string* reason) {
  static const GpuBlas kBlas = [] {
    GpuBlas blas{};
    blas.create = [](GpuBlasHandle* handle) {
      const Lock lock(state().mutex);
      return *handle = new GpuBlasHandleHandle, ++state().handles, 0;
    };
    blas.destroy = [](GpuBlasHandle handle) {
      const Lock lock(state().mutex);
      return delete handle, --state().handles, 0;
    };
    blas.set_stream = [](GpuBlasHandle handle, GpuStream stream) { return handle->stream = stream, 0; };
    blas.set_workspace = [](GpuBlasHandle, GpuPointer, std::size_t) { return 0; };
    blas.gemm = [](GpuBlasHandle handle, const GpuGemm& gemm) {
      const Lock lock(state().mutex);
      const KernelShape shape{
          .type = gemm.type,
          .precision = gemm.precision,
          .dims = {gemm.m, gemm.n, gemm.k, gemm_flags(gemm.transposes_a, gemm.transposes_b, gemm.batch)},
          .scalars = {gemm.alpha, gemm.beta}};
      const KernelCall call{
          shape, {reinterpret_cast<void*>(gemm.a), reinterpret_cast<void*>(gemm.b), reinterpret_cast<void*>(gemm.c)}};
      return enqueue_work(handle->stream, [call] { return run_kernel(kernel(kernel_named("gemm")), call); });
    };
    blas.describe = [](int result) { return fmt::format("fake BLAS status {}", result); };
    return blas;
  }();
  if (state().settings.has_blas) return &kBlas;
  *reason = "there is no fake BLAS";
  return nullptr;
}

constexpr std::size_t size_of_type(int nccl_type) { return nccl_type == 2 || nccl_type == 7 ? 4 : 2; }

// Copies where `from` is given.
int note_collective(std::string_view name, const void* from, void* to, std::size_t count, int type, GpuComm comm,
                    GpuStream stream) {
  const Lock lock(state().mutex);
  state().collective_calls.push_back(
      fmt::format("{} {} of type {} by {} on {}", name, count, type, comm->number, stream->number));
  if (from == nullptr || from == to || comm->ranks != 1) return enqueue_work(stream, [] { return 0; });
  return enqueue_seen(stream, GpuActivityRecord::Kind::copy,
                      [=] { return std::memcpy(to, from, count * size_of_type(type)), 0; });
}

int note_bracket(const char* text) {
  const Lock lock(state().mutex);
  return state().collective_calls.push_back(text), 0;
}

// Moves data where a rank is alone, which makes every collective a copy. There are no other ranks.
const GpuCollectives* collectives(std::string* reason) {
  static const GpuCollectives kCollectives = [] {
    GpuCollectives table{};
    table.get_unique_id = [](GpuCommId* id) { return std::strcpy(id->bytes, "fake"), 0; };
    table.comm_init_rank = [](GpuComm* comm, int ranks, GpuCommId id, int rank) {
      const Lock lock(state().mutex);
      State& s = state();
      if (std::string_view(id.bytes) != "fake" || rank >= ranks) return 4;
      *comm = new GpuCommHandle{.number = s.comms_made++, .ranks = ranks, .sent = {}};
      return ++s.comms, 0;
    };
    table.comm_destroy = table.comm_abort = [](GpuComm comm) {
      const Lock lock(state().mutex);
      return delete comm, --state().comms, 0;
    };
    table.all_gather = [](const void* from, void* to, std::size_t count, int type, GpuComm comm, GpuStream stream) {
      return note_collective("all_gather", from, to, count, type, comm, stream);
    };
    table.reduce_scatter = [](const void* from, void* to, std::size_t count, int type, int, GpuComm comm,
                              GpuStream stream) {
      return note_collective("reduce_scatter", from, to, count, type, comm, stream);
    };
    table.all_reduce = [](const void* from, void* to, std::size_t count, int type, int, GpuComm comm,
                          GpuStream stream) {
      return note_collective("all_reduce", from, to, count, type, comm, stream);
    };
    table.send = [](const void* from, std::size_t count, int type, int peer, GpuComm comm, GpuStream stream) {
      if (comm->ranks == 1) comm->sent.push_back(from);
      return note_collective(fmt::format("send to {}", peer), nullptr, nullptr, count, type, comm, stream);
    };
    table.recv = [](void* to, std::size_t count, int type, int peer, GpuComm comm, GpuStream stream) {
      const void* from = nullptr;
      if (!comm->sent.empty()) {
        from = comm->sent.front();
        comm->sent.pop_front();
      }
      return note_collective(fmt::format("recv from {}", peer), from, to, count, type, comm, stream);
    };
    table.group_start = [] { return note_bracket("("); };
    table.group_end = [] { return note_bracket(")"); };
    table.version = "fake NCCL 1";
    table.describe = [](int result) { return fmt::format("fake collective error {}", result); };
    return table;
  }();
  if (state().settings.has_collectives) return &kCollectives;
  *reason = "there are no fake collectives";
  return nullptr;
}

GpuApi make_api() {
  GpuApi api;
  api.backend = "fake";
  api.vendor_name = "fake";
  api.queues_reason = "there are none";
  api.device_code = [](std::string*) -> const void* { return "nothing"; };
  api.lost_hint = "nobody says more";
  api.device_count = [](int* count) { return *count = state().settings.device_count, *count == 0 ? kNoDevice : 0; };
  api.driver_version = [](int* version) { return *version = 1, 0; };
  api.format_version = [](int version) { return fmt::format("fake {}", version); };
  api.describe = [](int result) { return fmt::format("fake error {}", result); };
  api.is_lost = [](int result) { return result == 700; };
  api.facts = [](int, GpuFacts* facts) {
    *facts = {.model = "fake",
              .bus_id = "",
              .multiprocessors = state().settings.multiprocessors,
              .copy_engines = 1,
              .memory_bytes = state().settings.memory_bytes,
              .has_fp16 = true,
              .blas_workspace_bytes = 4 << 20};
    return 0;
  };
  api.context_retain = [](GpuContext* context, int index) {
    const Lock lock(state().mutex);
    State& s = state();
    if (index >= s.settings.device_count) return kBadDevice;
    *context = &s.contexts_made.emplace_back(GpuContextHandle{static_cast<int>(s.contexts_made.size()) + 1});
    return ++s.contexts, 0;
  };
  api.context_release = [](int) {
    const Lock lock(state().mutex);
    return --state().contexts, 0;
  };
  api.context_set_current = [](GpuContext context) { return current_context() = context->number, 0; };
  api.priority_range = [](int* least, int* greatest) { return *least = 0, *greatest = -5, 0; };

  api.memory_info = [](std::size_t* free, std::size_t* total) {
    const Lock lock(state().mutex);
    *total = state().settings.memory_bytes;
    *free = *total - state().used_bytes;
    return 0;
  };
  api.memory_allocate = [](GpuPointer* pointer, std::size_t bytes) {
    const Lock lock(state().mutex);
    State& s = state();
    if (s.used_bytes + bytes > s.settings.memory_bytes) return kOutOfMemory;
    s.used_bytes += bytes;
    return allocate(s.memory, reinterpret_cast<void**>(pointer), bytes);
  };
  api.memory_free = [](GpuPointer pointer) {
    const Lock lock(state().mutex);
    State& s = state();
    s.used_bytes -= s.memory[reinterpret_cast<void*>(pointer)];
    return release(s.memory, reinterpret_cast<void*>(pointer));
  };
  api.host_allocate = [](void** pointer, std::size_t bytes, unsigned) {
    const Lock lock(state().mutex);
    return allocate(state().host_memory, pointer, bytes);
  };
  api.host_free = [](void* pointer) {
    const Lock lock(state().mutex);
    return release(state().host_memory, pointer);
  };
  api.copy_to_device = [](GpuPointer to, const void* from, std::size_t bytes, GpuStream stream) {
    return copy(reinterpret_cast<void*>(to), from, bytes, stream);
  };
  api.copy_to_host = [](void* to, GpuPointer from, std::size_t bytes, GpuStream stream) {
    return copy(to, reinterpret_cast<void*>(from), bytes, stream);
  };
  api.copy_on_device = api.copy_any = [](GpuPointer to, GpuPointer from, std::size_t bytes, GpuStream stream) {
    return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes, stream);
  };
  api.set_16 = fill<unsigned short>;
  api.set_32 = fill<unsigned>;

  api.stream_create = [](GpuStream* stream, unsigned, int priority) {
    const Lock lock(state().mutex);
    state().priorities.push_back(priority);
    *stream = new GpuStreamHandle{.number = state().streams_made++, .context = current_context()};
    return state().streams.insert(*stream), 0;
  };
  api.stream_destroy = [](GpuStream stream) {
    const Lock lock(state().mutex);
    return state().streams.erase(stream), delete stream, 0;
  };
  api.stream_synchronize = stream_synchronize;
  api.synchronize = synchronize;
  api.stream_wait = stream_wait;
  api.event_create = [](GpuEvent* event, unsigned flags) {
    const Lock lock(state().mutex);
    *event = new GpuEventHandle{.has_timing = flags != kGpuEventNoTiming};
    return state().events.insert(*event), 0;
  };
  api.event_destroy = [](GpuEvent event) {
    const Lock lock(state().mutex);
    return state().events.erase(event), delete event, 0;
  };
  api.event_record = event_record;
  api.event_synchronize = event_synchronize;
  api.event_elapsed = event_elapsed;

  api.module_load = [](GpuModule* module, const void*) {
    const Lock lock(state().mutex);
    return *module = &state().module, ++state().modules, 0;
  };
  api.module_unload = [](GpuModule) {
    const Lock lock(state().mutex);
    return --state().modules, 0;
  };
  api.function_get = function_get;
  api.launch = launch;
  api.launch_host = launch_host;
  api.capture_begin = capture_begin;
  api.capture_end = capture_end;
  api.graph_instantiate = [](GpuGraphExec* exec, GpuGraph graph, unsigned long long) {
    return *exec = new GpuGraphExecHandle{graph->capture}, ++state().execs, 0;
  };
  api.graph_launch = [](GpuGraphExec exec, GpuStream stream) {
    const Lock lock(state().mutex);
    ++state().graph_launches;
    return enqueue_work(stream, [exec] { return run_graph(exec->capture); });
  };
  api.graph_exec_destroy = [](GpuGraphExec exec) { return delete exec, --state().execs, 0; };
  api.graph_destroy = [](GpuGraph graph) { return delete graph, --state().graphs, 0; };
  api.blas = blas;
  api.collectives = collectives;
  api.activity = activity;
  api.occupancy = [](int* blocks, GpuFunction, int threads, std::size_t) { return *blocks = 2048 / threads, 0; };
  api.management = [](std::string*) -> const GpuManagement* { return nullptr; };
  return api;
}

GpuApi& table() {
  static GpuApi kApi = make_api();
  return kApi;
}

}  // namespace

void reset(const Settings& settings) {
  State& s = state();
  s.settings = settings;
  s.steps = 0;
  s.now_ms = 0;
  s.broken = s.launches = s.runs = s.graph_launches = s.streams_made = s.comms_made = 0;
  s.collective_calls.clear();
  s.priorities.clear();
  s.parts_made = s.parts_orphaned = 0;
  s.confined_to.clear();
  s.activity = {};
  table().graph_kernels = settings.has_recording ? graph_kernels : nullptr;
  table().launch_recorded = settings.has_recording ? launch_recorded : nullptr;
  table().launch_host = settings.has_host_functions ? launch_host : nullptr;
  table().stream_write = settings.has_writes ? stream_write : nullptr;
  table().stream_wait_value = settings.has_waits ? stream_wait_value : nullptr;
  table().capture_begin = settings.has_graphs ? capture_begin : nullptr;
  offer_parts(table(), settings);
}

const GpuApi& api() { return table(); }

std::string leaks() {
  const State& s = state();
  const std::pair<const char*, std::size_t> counts[] = {{"buffers", s.memory.size()},
                                                        {"host buffers", s.host_memory.size()},
                                                        {"streams", s.streams.size()},
                                                        {"parts", s.parts.size()},
                                                        {"orphaned parts", static_cast<std::size_t>(s.parts_orphaned)},
                                                        {"events", s.events.size()},
                                                        {"contexts", static_cast<std::size_t>(s.contexts)},
                                                        {"modules", static_cast<std::size_t>(s.modules)},
                                                        {"graphs", static_cast<std::size_t>(s.graphs)},
                                                        {"executables", static_cast<std::size_t>(s.execs)},
                                                        {"BLAS handles", static_cast<std::size_t>(s.handles)},
                                                        {"communicators", static_cast<std::size_t>(s.comms)}};
  std::string text;
  for (const auto& [name, count] : counts)
    if (count != 0) text += fmt::format("{} {} ", count, name);
  return text;
}

int launches() { return state().launches; }
const std::vector<std::string>& collective_calls() { return state().collective_calls; }
int activity_starts() { return state().activity.starts; }
int activity_stops() { return state().activity.stops; }
int graph_launches() { return state().graph_launches; }
const std::vector<int>& priorities() { return state().priorities; }
const std::vector<std::uint64_t>& confined_to() { return state().confined_to; }

}  // namespace weir::fake_gpu
