#include "submit/inject/cuda_part.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "submit/inject/cuda_hooks.h"
#include "submit/inject/cupti_driver.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/of_thread.h"

namespace weir::inject {

#if CUDA_VERSION >= 12040

namespace {

using scheduler::Confinable;

using GetKernel = CUresult(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*);
using SetKernel = CUresult(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2*);

struct Driver {
  decltype(&cuDeviceGetDevResource) resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split = nullptr;
  decltype(&cuDevResourceGenerateDesc) describe = nullptr;
  decltype(&cuGreenCtxCreate) make_part = nullptr;
  decltype(&cuGreenCtxDestroy) drop_part = nullptr;
  decltype(&cuGreenCtxStreamCreate) make_stream = nullptr;
  decltype(&cuCtxFromGreenCtx) as_context = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
  decltype(&cuStreamGetPriority) priority = nullptr;
  decltype(&cuStreamDestroy_v2) drop_stream = nullptr;
  decltype(&cuStreamSynchronize) synchronize = nullptr;
  decltype(&cuStreamWaitEvent) wait = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) primary_state = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuDevicePrimaryCtxRelease_v2) release = nullptr;
  decltype(&cuGraphClone) clone = nullptr;
  decltype(&cuGraphDestroy) drop_graph = nullptr;
  decltype(&cuGraphGetNodes) nodes = nullptr;
  decltype(&cuGraphNodeGetType) type = nullptr;
  decltype(&cuGraphChildGraphNodeGetGraph) child = nullptr;
  decltype(&cuGraphKernelNodeGetAttribute) node_attribute = nullptr;
  GetKernel* kernel = nullptr;
  SetKernel* set_kernel = nullptr;
  decltype(&cuGraphInstantiateWithFlags) instantiate = nullptr;
  decltype(&cuGraphExecDestroy) drop_executable = nullptr;
};
Driver g_driver;
std::atomic<bool> g_is_bound{false}, g_is_off{false};

constexpr std::size_t kMostParts = 8, kMostStreams = 128;

// The stream of a part that stands beside one of the program's. A handle that is another stream by now does no harm:
// the events are about the launch alone.
struct Beside {
  void* own = nullptr;
  const void* thread = nullptr;  // of a handle that is another stream in each thread
  CUstream stream = nullptr;
  Event before = nullptr, after = nullptr;
};

struct Part {
  std::uint32_t percent = 0;
  CUgreenCtx green = nullptr;  // null: the driver refused
  CUcontext context = nullptr;
  std::vector<Beside> streams;
};

// An executable graph of the program's.
struct Graph {
  CUgraph copy = nullptr;  // of what it was made of
  unsigned long long flags = 0;
  CUgraphExec twin = nullptr;
  std::uint32_t percent = 0;  // of the part in which the twin runs
  bool fits = true, is_known = false, was_launched = false, was_twin = false;
  // Where it was launched last, and on which thread's stream where each thread has one of its own.
  void* stream = nullptr;
  const void* thread = nullptr;
  Event last = nullptr;  // behind the twin's last launch
};

std::mutex g_mutex;  // protects what follows
CUcontext g_primary = nullptr;
std::uint32_t g_primary_id = 0;
// Never destroyed: threads may launch while the program exits.
std::vector<Part>& g_parts = *new std::vector<Part>;
std::unordered_map<CUgraphExec, Graph>& g_graphs = *new std::unordered_map<CUgraphExec, Graph>;
// Launches between enter_part() and leave_part(), and whether there may be new ones.
std::atomic<int> g_under_way{0};
std::atomic<bool> g_is_forgetting{false};

// A launch that is under way in this thread.
struct Way {
  CUstream stream = nullptr;  // null: a graph's twin, in the program's own stream
  Event after = nullptr;      // to be recorded behind the launch
};

// What belonged to a context that is gone. The handles are the driver's no more.
void lose_all() noexcept {
  g_parts.clear();
  for (auto& [executable, graph] : g_graphs) {
    graph.twin = nullptr;
    graph.last = nullptr;
    graph.was_twin = graph.was_launched = false;
  }
  g_primary = nullptr;
}

// The context that green ones belong to; null where the program does not use it. cudaDeviceReset() makes another one of
// it without a call that would say so.
CUcontext primary() noexcept {
  if (g_primary != nullptr && context_id_by_driver(g_primary) != g_primary_id) lose_all();
  unsigned flags = 0;
  int is_active = 0;
  if (g_primary != nullptr || g_driver.primary_state(0, &flags, &is_active) != CUDA_SUCCESS || is_active == 0)
    return g_primary;
  if (g_driver.retain(&g_primary, 0) != CUDA_SUCCESS) return g_primary = nullptr;
  g_driver.release(0);
  g_primary_id = context_id_by_driver(g_primary);
  return g_primary;
}

// Tells streams apart that have one handle.
const void* thread_of(Stream stream) noexcept {
  static constexpr char kNobody = 0;
  return stream.is_of_thread ? static_cast<const void*>(OfThread<Way>::get()) : &kNobody;
}

// Compute units come in groups, from a Hopper on in groups of eight.
unsigned units_of(unsigned all, std::uint32_t percent) noexcept {
  int major = 0;
  if (g_driver.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) != CUDA_SUCCESS) major = 9;
  const unsigned group = major >= 9 ? 8 : major >= 7 ? 2 : 1, least = major >= 9 ? 8 : major >= 8 ? 4 : 2;
  return std::max(all * std::min(percent, 100U) / 100 / group * group, least);
}

bool make(Part& part) noexcept {
  const Visiting visiting(cuda_driver(), primary());
  CUdevResource all{}, mine{}, rest{};
  CUdevResourceDesc description = nullptr;
  unsigned groups = 1;
  if (!visiting || g_driver.resource(0, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) return false;
  const bool is_made =
      g_driver.split(&mine, &groups, &all, &rest, 0, units_of(all.sm.smCount, part.percent)) == CUDA_SUCCESS &&
      groups == 1 && g_driver.describe(&description, &mine, 1) == CUDA_SUCCESS &&
      g_driver.make_part(&part.green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_SUCCESS;
  if (!is_made) part.green = nullptr;
  return is_made && g_driver.as_context(&part.context, part.green) == CUDA_SUCCESS;
}

// Null where there is none. Called with the lock.
Part* part_of(std::uint32_t percent) noexcept {
  const auto known =
      std::find_if(g_parts.begin(), g_parts.end(), [&](const Part& one) { return one.percent == percent; });
  if (known != g_parts.end()) return known->green == nullptr ? nullptr : &*known;
  if (g_parts.size() == kMostParts || primary() == nullptr) return nullptr;
  if (g_parts.capacity() == 0) g_parts.reserve(kMostParts);
  Part& part = g_parts.emplace_back();
  part.percent = percent;
  part.streams.reserve(kMostStreams);
  return make(part) ? &part : nullptr;
}

// The calling thread visits the context.
const Beside* beside(Part& part, Stream own) noexcept {
  const void* const thread = thread_of(own);
  for (const Beside& one : part.streams)
    if (one.own == own.handle && one.thread == thread) return &one;
  if (part.streams.size() == kMostStreams) {
    if (g_under_way.load() > 1) return nullptr;  // somebody may be about to use the one that goes
    const Beside& oldest = part.streams.front();
    g_driver.drop_stream(oldest.stream);
    cuda_driver().drop(oldest.before);
    cuda_driver().drop(oldest.after);
    part.streams.erase(part.streams.begin());
  }
  int priority = 0;
  if (g_driver.priority(static_cast<CUstream>(own.handle), &priority) != CUDA_SUCCESS) priority = 0;
  Beside made{own.handle, thread, nullptr, cuda_driver().make(), cuda_driver().make()};
  if (made.before == nullptr || made.after == nullptr ||
      g_driver.make_stream(&made.stream, part.green, CU_STREAM_NON_BLOCKING, priority) != CUDA_SUCCESS)
    return nullptr;
  part.streams.push_back(made);
  return &part.streams.back();
}

bool is_launched_alone(const CUlaunchConfig* config) noexcept {
  if (config == nullptr) return false;
  for (unsigned i = 0; i < config->numAttrs; ++i) switch (config->attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (config->attrs[i].value.cooperative != 0) return false;
        break;
      default:
        return false;
    }
  return true;
}

bool is_graph(const CudaFunction& function) noexcept { return function.kind == record::Kind::graph_launch; }

CUgraphExec executable_of(const CudaFunction& function, const void* arguments) noexcept {
  return reinterpret_cast<CUgraphExec>(static_cast<std::uintptr_t>(object_of(function, arguments, true)));
}

bool is_cooperative(CUgraphNode node) noexcept {
  CUlaunchAttributeValue value{};
  return g_driver.node_attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) != CUDA_SUCCESS ||
         value.cooperative != 0;
}

// Puts all kernels of a graph into a context; null: only looks whether that can be done. Kernels of modules belong to
// the context that the module was loaded in; those of libraries to none.
bool put_into(CUgraph graph, CUcontext context, int depth = 0) {
  constexpr int kMostDepth = 8;
  std::size_t count = 0;
  if (depth > kMostDepth || g_driver.nodes(graph, nullptr, &count) != CUDA_SUCCESS) return false;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && g_driver.nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return false;
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    if (g_driver.type(node, &type) != CUDA_SUCCESS) return false;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      if (g_driver.child(node, &child) != CUDA_SUCCESS || !put_into(child, context, depth + 1)) return false;
    } else if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      if (g_driver.kernel(node, &kernel) != CUDA_SUCCESS || kernel.kern == nullptr || is_cooperative(node))
        return false;
      kernel.func = nullptr;
      kernel.ctx = context;
      if (context != nullptr && g_driver.set_kernel(node, &kernel) != CUDA_SUCCESS) return false;
    } else if (type != CU_GRAPH_NODE_TYPE_MEMCPY && type != CU_GRAPH_NODE_TYPE_MEMSET &&
               type != CU_GRAPH_NODE_TYPE_EMPTY && type != CU_GRAPH_NODE_TYPE_HOST &&
               type != CU_GRAPH_NODE_TYPE_WAIT_EVENT && type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      return false;
    }
  }
  return true;
}

bool can_be_put_into(CUgraph graph, CUcontext context) noexcept {
  try {
    return put_into(graph, context);
  } catch (const std::exception&) {
    return false;  // no memory
  }
}

void drop_twin(Graph& graph) noexcept {
  if (graph.twin != nullptr) g_driver.drop_executable(graph.twin);
  graph.twin = nullptr;
}

void drop(Graph& graph) noexcept {
  drop_twin(graph);
  if (graph.copy != nullptr) g_driver.drop_graph(graph.copy);
  graph.copy = nullptr;
  graph.fits = false;
}

Graph* graph_of(CUgraphExec executable) noexcept {
  const auto found = g_graphs.find(executable);
  if (found == g_graphs.end()) return nullptr;
  Graph& graph = found->second;
  if (graph.fits && !graph.is_known && !can_be_put_into(graph.copy, nullptr)) drop(graph);
  graph.is_known = true;
  return &graph;
}

// The graph's twin for a part, or null.
CUgraphExec twin_of(Graph& graph, Part& part) noexcept {
  if (graph.twin != nullptr && graph.percent == part.percent) return graph.twin;
  drop_twin(graph);  // one that runs is freed when it has ended
  graph.percent = part.percent;
  if (!can_be_put_into(graph.copy, part.context) ||
      g_driver.instantiate(&graph.twin, graph.copy, graph.flags) != CUDA_SUCCESS) {
    graph.twin = nullptr;
    drop(graph);
  }
  return graph.twin;
}

// A graph never runs beside itself. So it becomes its twin only on the stream that orders the two, and is itself again
// behind an event.
bool enter_graph(CUgraphExec executable, Stream stream, Context context, std::uint32_t percent) noexcept {
  Graph* const graph = graph_of(executable);
  Way* const way = OfThread<Way>::get();
  if (graph == nullptr || way == nullptr) return false;
  const void* const thread = thread_of(stream);
  const bool is_ordered = !graph->was_launched || (graph->stream == stream.handle && graph->thread == thread);
  const bool was_twin = graph->was_twin;
  graph->was_launched = true;
  graph->stream = stream.handle;
  graph->thread = thread;
  Part* const part = percent == 0 || !graph->fits || primary() != context ? nullptr : part_of(percent);
  const Visiting visiting(cuda_driver(), context);
  if (!visiting) return false;
  if (graph->last == nullptr && part != nullptr) graph->last = cuda_driver().make();
  // A twin for a part of another size is made only where the stream orders the two.
  const bool is_at_hand = graph->twin != nullptr && part != nullptr && graph->percent == part->percent;
  CUgraphExec twin = nullptr;
  if (part != nullptr && graph->last != nullptr && (is_ordered || (was_twin && is_at_hand)))
    twin = twin_of(*graph, *part);
  graph->was_twin = twin != nullptr;
  if (twin == nullptr) {
    if (was_twin && !is_ordered)
      g_driver.wait(static_cast<CUstream>(stream.handle), static_cast<CUevent>(graph->last), 0);
    return false;
  }
  *way = {nullptr, graph->last};
  redirect_call(nullptr, twin);
  return true;
}

// Threads may do this at the same time for one stream: each waits for what was in it before, and what comes after waits
// for each.
bool enter_stream(Stream stream, Context context, std::uint32_t percent, Way* way) noexcept {
  const Visiting visiting(cuda_driver(), context);
  if (!visiting) return false;
  Beside other;
  {
    const std::lock_guard lock(g_mutex);
    Part* const part = primary() != context ? nullptr : part_of(percent);
    const Beside* const found = part == nullptr ? nullptr : beside(*part, stream);
    if (found == nullptr) return false;
    other = *found;
  }
  if (!cuda_driver().record(other.before, stream.handle) ||
      g_driver.wait(other.stream, static_cast<CUevent>(other.before), 0) != CUDA_SUCCESS)
    return false;
  *way = {other.stream, other.after};
  redirect_call(other.stream, nullptr);
  return true;
}

}  // namespace

Confinable bind_cuda_part() noexcept {
  if (!has_hooks()) return Confinable::not_hooked;
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return Confinable::no_driver;
  Driver found;
  EntryPoints driver(library);
  driver.need(found.resource, "cuDeviceGetDevResource");
  driver.need(found.split, "cuDevSmResourceSplitByCount");
  driver.need(found.describe, "cuDevResourceGenerateDesc");
  driver.need(found.make_part, "cuGreenCtxCreate");
  driver.need(found.drop_part, "cuGreenCtxDestroy");
  driver.need(found.make_stream, "cuGreenCtxStreamCreate");
  driver.need(found.as_context, "cuCtxFromGreenCtx");
  driver.need(found.attribute, "cuDeviceGetAttribute");
  driver.need(found.priority, "cuStreamGetPriority");
  driver.need(found.drop_stream, "cuStreamDestroy_v2");
  driver.need(found.synchronize, "cuStreamSynchronize");
  driver.need(found.wait, "cuStreamWaitEvent");
  driver.need(found.primary_state, "cuDevicePrimaryCtxGetState");
  driver.need(found.retain, "cuDevicePrimaryCtxRetain");
  driver.need(found.release, "cuDevicePrimaryCtxRelease_v2");
  driver.need(found.clone, "cuGraphClone");
  driver.need(found.drop_graph, "cuGraphDestroy");
  driver.need(found.nodes, "cuGraphGetNodes");
  driver.need(found.type, "cuGraphNodeGetType");
  driver.need(found.child, "cuGraphChildGraphNodeGetGraph");
  driver.need(found.node_attribute, "cuGraphKernelNodeGetAttribute");
  driver.need(found.kernel, "cuGraphKernelNodeGetParams_v2");
  driver.need(found.set_kernel, "cuGraphKernelNodeSetParams_v2");
  driver.need(found.instantiate, "cuGraphInstantiateWithFlags");
  driver.need(found.drop_executable, "cuGraphExecDestroy");
  if (driver.missing() != nullptr) return Confinable::no_driver;
  g_driver = found;
  g_is_bound.store(true, std::memory_order_release);
  return Confinable::unknown;
}

Confinable prepare_part(Context context, std::uint32_t percent) noexcept {
  if (!g_is_bound.load(std::memory_order_acquire) || g_is_off) return Confinable::no_driver;
  const std::lock_guard lock(g_mutex);
  if (primary() != context) return Confinable::own_contexts;
  return part_of(percent) != nullptr ? Confinable::yes : Confinable::refused;
}

bool fits_part(const CudaFunction& function, const void* arguments, Stream stream, Context context) noexcept {
  if (!g_is_bound.load(std::memory_order_acquire) || g_is_off || context == nullptr) return false;
  {
    const std::lock_guard lock(g_mutex);
    if (primary() != context) return false;
    if (is_graph(function)) {
      const Graph* const graph = graph_of(executable_of(function, arguments));
      if (graph == nullptr || !graph->fits) return false;
      return !graph->was_launched || graph->was_twin ||
             (graph->stream == stream.handle && graph->thread == thread_of(stream));
    }
  }
  switch (function.id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
      return is_launched_alone(static_cast<const cuLaunchKernelEx_params*>(arguments)->config);
    default:
      // Copies and memsets need no compute units to speak of: they go where they went.
      return function.kind == record::Kind::copy || function.kind == record::Kind::synchronous_copy ||
             function.kind == record::Kind::memset;
  }
}

bool enter_part(const CudaFunction& function, const void* arguments, Stream stream, Context context,
                std::uint32_t percent) noexcept {
  if (g_is_off || (percent == 0 && !is_graph(function))) return false;
  if (!is_graph(function) && function.kind != record::Kind::launch) return false;
  Way* const way = OfThread<Way>::get();
  if (way == nullptr) return false;
  g_under_way.fetch_add(1);
  bool is_redirected = !g_is_forgetting.load();
  if (is_redirected && is_graph(function)) {
    const std::lock_guard lock(g_mutex);
    is_redirected = enter_graph(executable_of(function, arguments), stream, context, percent);
  } else if (is_redirected) {
    is_redirected = enter_stream(stream, context, percent, way);
  }
  if (!is_redirected) g_under_way.fetch_sub(1);
  return is_redirected;
}

void leave_part(Stream stream, Context context) noexcept {
  Way* const way = OfThread<Way>::get();
  if (way == nullptr || way->after == nullptr || g_is_off) return;
  const Way taken = *way;
  *way = {};
  const Visiting visiting(cuda_driver(), context);
  if (visiting && taken.stream == nullptr) {
    cuda_driver().record(taken.after, stream.handle);
  } else if (visiting && (!cuda_driver().record(taken.after, taken.stream) ||
                          g_driver.wait(static_cast<CUstream>(stream.handle), static_cast<CUevent>(taken.after), 0) !=
                              CUDA_SUCCESS)) {
    // What comes next in the program's stream must not run before this.
    g_driver.synchronize(taken.stream);
  }
  g_under_way.fetch_sub(1);
}

namespace {

void follow(const CudaFunction& function, const void* arguments) {
  using Role = CudaFunction::Role;
  if (!g_is_bound.load(std::memory_order_acquire) || g_is_off) return;
  const std::lock_guard lock(g_mutex);
  if (function.role != Role::graph_made) {
    const auto found = g_graphs.find(executable_of(function, arguments));
    if (found == g_graphs.end()) return;
    // One that differs from its copy is launched as it is from now on.
    drop(found->second);
    if (function.role != Role::graph_ends) return;
    if (const Visiting visiting(cuda_driver(), g_primary); found->second.last != nullptr && visiting)
      cuda_driver().drop(found->second.last);
    g_graphs.erase(found);
    return;
  }
  const auto& made = *static_cast<const cuGraphInstantiateWithFlags_params*>(arguments);
  unsigned long long flags = made.flags;
  if (function.id != CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags) {
    const auto* const parameters =
        static_cast<const cuGraphInstantiateWithParams_ptsz_params*>(arguments)->instantiateParams;
    flags = parameters == nullptr ? 0 : parameters->flags;
  }
  if (made.phGraphExec == nullptr || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return;
  Graph graph;
  graph.flags = flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  // Fails for graphs that must not be made twice: those that allocate memory.
  if (g_driver.clone(&graph.copy, made.hGraph) != CUDA_SUCCESS) return;
  Graph& known = g_graphs[*made.phGraphExec];
  drop(known);
  known = graph;
}

}  // namespace

void follow_graph(const CudaFunction& function, const void* arguments) noexcept {
  if (!g_is_bound.load(std::memory_order_acquire) || g_is_off) return;
  try {
    follow(function, arguments);
  } catch (const std::exception&) {
    // Without memory it is not known, and launched as it is.
  }
}

void forget_parts() noexcept {
  if (!g_is_bound.load(std::memory_order_acquire) || g_is_off) return;
  g_is_forgetting.store(true);
  // Launches do not take long; one that never returns has a context that goes under it anyway.
  constexpr int kMostTries = 10'000;
  const timespec rest{0, 100'000};
  for (int tries = 0; g_under_way.load() > 0 && tries < kMostTries; ++tries)
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
  {
    const std::lock_guard lock(g_mutex);
    const Visiting visiting(cuda_driver(), primary());
    if (g_primary != nullptr && visiting) {
      for (auto& [executable, graph] : g_graphs) {
        drop_twin(graph);
        if (graph.last != nullptr) cuda_driver().drop(graph.last);
      }
      for (const Part& part : g_parts) {
        for (const Beside& one : part.streams) {
          g_driver.drop_stream(one.stream);
          cuda_driver().drop(one.before);
          cuda_driver().drop(one.after);
        }
        if (part.green != nullptr) g_driver.drop_part(part.green);
      }
    }
    lose_all();
  }
  g_is_forgetting.store(false);
}

void abandon_parts() noexcept { g_is_off.store(true); }

#else

scheduler::Confinable bind_cuda_part() noexcept { return scheduler::Confinable::no_driver; }
scheduler::Confinable prepare_part(Context, std::uint32_t) noexcept { return scheduler::Confinable::no_driver; }
bool fits_part(const CudaFunction&, const void*, Stream, Context) noexcept { return false; }
bool enter_part(const CudaFunction&, const void*, Stream, Context, std::uint32_t) noexcept { return false; }
void leave_part(Stream, Context) noexcept {}
void follow_graph(const CudaFunction&, const void*) noexcept {}
void forget_parts() noexcept {}
void abandon_parts() noexcept {}

#endif

}  // namespace weir::inject
