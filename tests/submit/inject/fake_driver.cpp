// A CUDA driver without a GPU: streams are threads that let time pass, in order. Loads CUDA_INJECTION64_PATH as the
// real one does. As strict as that one where a guest in somebody else's program can do harm: captures that are spoiled,
// events of other contexts, contexts that are gone. FAKE_DRIVER_FAILS=make|record|query|give|part makes our own
// calls fail.
#include "fake_driver.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_memory.h"

struct CUctx_st {
  int device = 0;
  bool is_alive = true;
  CUcontext primary = nullptr;  // of a green one
};
struct CUgreenCtx_st {
  CUctx_st context;
  unsigned units = 0;
};
struct Kernel {
  int us = 0;
  FakeDriverOrder* order = nullptr;
  int index = -1;
  bool is_in_part = false;
  std::function<void()> body = nullptr;  // what it does when its time has passed
};
struct CUgraphNode_st {
  Kernel kernel;
};
struct CUgraph_st {
  std::deque<CUgraphNode_st> nodes;
  int records = 0;
};
struct CUgraphExec_st {
  std::vector<Kernel> kernels;
  bool is_running = false, is_gone = false;
};
struct CUevent_st {
  CUcontext context = nullptr;
  bool is_captured = false, is_recorded = false;
  std::uint64_t version = 0, reached = 0;
};
struct Operation {
  std::vector<Kernel> kernels;  // empty: a record of an event, or a wait for one
  CUevent event = nullptr;
  std::uint64_t version = 0;
  bool waits = false;
  std::uint32_t correlation = 0;
  CUgraphExec executable = nullptr;
};
struct CUstream_st {
  CUcontext context = nullptr;
  std::uint64_t id = 0;
  CUgraph capture = nullptr;  // null: none
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool is_spoiled = false;
  std::deque<Operation> pending;
  std::uint64_t submitted = 0, ended = 0;
};

namespace {

using Lock = std::unique_lock<std::mutex>;

struct Fake {
  std::mutex mutex;
  std::condition_variable changed;
  FakeDriverHook hook = nullptr;
  FakeDriverSource source = nullptr;
  FakeDriverEnded ended_hook = nullptr;
  CUcontext primary[2] = {nullptr, nullptr};
  std::set<CUstream> streams;
  std::map<CUcontext, CUstream> legacy;
  std::map<std::pair<CUcontext, std::thread::id>, CUstream> per_thread;
  std::set<CUevent> events;
  std::uint64_t ended = 0, on_device = 0, most = 0, in_part = 0;
  std::string misuse;
};
// Never destroyed: the threads of streams outlive main().
Fake& fake() {
  static Fake& kFake = *new Fake;
  return kFake;
}
thread_local std::vector<CUcontext> t_contexts;
thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUcontext current() { return t_contexts.empty() ? nullptr : t_contexts.back(); }

CUresult misused(const char* how, CUresult result) {
  if (fake().misuse.empty()) fake().misuse = how;
  return result;
}

bool is_asked_to_fail(const char* what) {
  const char* const text = std::getenv("FAKE_DRIVER_FAILS");
  return text != nullptr && std::strcmp(text, what) == 0;
}

void serve(CUstream stream) {
  Fake& f = fake();
  Lock lock(f.mutex);
  for (;;) {
    f.changed.wait(lock, [&] { return !stream->pending.empty(); });
    const Operation operation = stream->pending.front();
    if (operation.waits) f.changed.wait(lock, [&] { return operation.event->reached >= operation.version; });
    // An executable graph never runs beside itself.
    if (operation.executable != nullptr) {
      f.changed.wait(lock, [&] { return !operation.executable->is_running; });
      operation.executable->is_running = true;
    }
    for (const Kernel& kernel : operation.kernels) {
      const FakeDriverEnded ended = f.ended_hook;
      if (FakeDriverOrder* const order = kernel.order; order != nullptr) {
        order->is_broken |= order->is_running || (kernel.index >= 0 && order->next != kernel.index);
        order->is_running = true;
      }
      f.in_part += kernel.is_in_part || stream->context->primary != nullptr ? 1 : 0;
      lock.unlock();
      const auto started = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::microseconds(kernel.us));
      if (ended != nullptr)
        ended(operation.correlation, stream, started.time_since_epoch().count(),
              std::chrono::steady_clock::now().time_since_epoch().count());
      if (kernel.body) kernel.body();
      lock.lock();
      if (kernel.order != nullptr) kernel.order->is_running = false, ++kernel.order->next;
    }
    if (operation.executable != nullptr) operation.executable->is_running = false;
    // Also of one that is destroyed by now, for which others may wait.
    if (operation.event != nullptr && !operation.waits)
      operation.event->reached = std::max(operation.event->reached, operation.version);
    if (operation.event == nullptr) {
      ++f.ended;
      --f.on_device;
    }
    stream->pending.pop_front();
    ++stream->ended;
    f.changed.notify_all();
  }
}

CUstream make_stream(CUcontext context) {
  auto* const stream = new CUstream_st;
  stream->context = context;
  static std::uint64_t g_streams = 12;
  stream->id = ++g_streams;
  fake().streams.insert(stream);
  std::thread(serve, stream).detach();
  return stream;
}

// The lock is held. Null: there is no such stream.
CUstream resolve(CUstream handle, bool is_per_thread) {
  Fake& f = fake();
  if (handle == nullptr) handle = is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
    return f.streams.contains(handle) ? handle : nullptr;
  if (current() == nullptr) return nullptr;
  CUstream& known =
      handle == CU_STREAM_LEGACY ? f.legacy[current()] : f.per_thread[{current(), std::this_thread::get_id()}];
  if (known == nullptr) known = make_stream(current());
  return known;
}

CUresult submit(CUstream handle, bool is_per_thread, std::vector<Kernel> kernels, CUgraphExec executable = nullptr) {
  Fake& f = fake();
  const Lock lock(f.mutex);
  const CUstream stream = resolve(handle, is_per_thread);
  if (stream == nullptr || !stream->context->is_alive) return CUDA_ERROR_INVALID_HANDLE;
  for (const Kernel& kernel : kernels) fake_memory_note(stream->id, "k" + std::to_string(kernel.us));
  if (stream->capture != nullptr) {
    for (const Kernel& kernel : kernels) stream->capture->nodes.push_back({kernel});
    return CUDA_SUCCESS;
  }
  ++stream->submitted;
  f.most = std::max(f.most, ++f.on_device);
  stream->pending.push_back({std::move(kernels), nullptr, 0, false, f.source == nullptr ? 0 : f.source(), executable});
  f.changed.notify_all();
  return CUDA_SUCCESS;
}

// A capture in global mode forbids every thread what could disturb it, unless that thread says that it knows better.
bool spoils_a_capture() {
  if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  bool is_one = false;
  for (const CUstream stream : fake().streams)
    if (stream->capture != nullptr) is_one = stream->is_spoiled = true;
  return is_one;
}

template <class Arguments, class Body>
CUresult around(std::uint32_t function, const Arguments& arguments, Body body) {
  std::uint64_t correlation = 0xdead;  // nobody promises a zero
  CUresult result = CUDA_SUCCESS;
  const FakeDriverHook hook = fake().hook;
  if (hook != nullptr) hook(function, true, &arguments, &result, &correlation);
  result = body();
  if (hook != nullptr) hook(function, false, &arguments, &result, &correlation);
  return result;
}

std::vector<Kernel> kernel_of(CUfunction function, void** parameters) {
  if (parameters == nullptr) return {Kernel{}};
  if (FakeWork work = fake_memory_kernel(function, parameters); work.body)
    return {Kernel{.us = work.us, .body = std::move(work.body)}};
  Kernel kernel{*static_cast<int*>(parameters[0])};
  if (function == fake_driver_ordered_kernel()) {
    kernel.order = *static_cast<FakeDriverOrder**>(parameters[1]);
    kernel.index = *static_cast<int*>(parameters[2]);
  }
  return {kernel};
}

}  // namespace

CUresult fake_driver_submit(CUstream stream, FakeWork work) {
  return submit(stream, false, {Kernel{.us = work.us, .body = std::move(work.body)}});
}
bool fake_driver_spoils_a_capture() {
  const Lock lock(fake().mutex);
  if (!spoils_a_capture()) return false;
  misused("a capture is spoiled", CUDA_SUCCESS);
  return true;
}

extern "C" {

void fake_driver_set_hook(FakeDriverHook hook) { fake().hook = hook; }
void fake_driver_set_records(FakeDriverSource source, FakeDriverEnded ended) {
  const Lock lock(fake().mutex);
  fake().source = source;
  fake().ended_hook = ended;
}
CUfunction fake_driver_kernel() { return reinterpret_cast<CUfunction>(&fake()); }
CUfunction fake_driver_ordered_kernel() { return reinterpret_cast<CUfunction>(&fake().mutex + 1); }
std::uint64_t fake_driver_in_part() {
  const Lock lock(fake().mutex);
  return fake().in_part;
}
std::uint64_t fake_driver_ended() {
  const Lock lock(fake().mutex);
  return fake().ended;
}
std::uint64_t fake_driver_most_on_device() {
  const Lock lock(fake().mutex);
  return fake().most;
}
std::uint64_t fake_driver_events() {
  const Lock lock(fake().mutex);
  return fake().events.size();
}
bool fake_driver_knows_next() { return ::dlsym(RTLD_NEXT, "fake_driver_kernel") == nullptr; }
const char* fake_driver_misuse() {
  const Lock lock(fake().mutex);
  return fake().misuse.c_str();
}

CUresult cuInit(unsigned) {
  ::pthread_atfork([] { fake().mutex.lock(); }, [] { fake().mutex.unlock(); }, [] { fake().mutex.unlock(); });
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return CUDA_SUCCESS;
  void* const library = ::dlopen(path, RTLD_NOW);
  const auto start =
      library == nullptr ? nullptr : reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
  return start == nullptr || start() != 1 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Lock lock(fake().mutex);
  CUcontext& own = fake().primary[device];
  if (own == nullptr || !own->is_alive) own = new CUctx_st{device, true};  // the old one stays, to be recognised
  *context = own;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  const cuDevicePrimaryCtxReset_v2_params arguments{device};
  return around(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2, arguments, [&] {
    const Lock lock(fake().mutex);
    fake().primary[device]->is_alive = false;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = current(), CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) {
  t_contexts.assign(context == nullptr ? 0 : 1, context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  const Lock lock(fake().mutex);
  if (!context->is_alive) return misused("a context is made current that is gone", CUDA_ERROR_INVALID_CONTEXT);
  t_contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (t_contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = t_contexts.back();
  t_contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return *device = current()->device, CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  return around(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, 0, [&] {
    Fake& f = fake();
    Lock lock(f.mutex);
    f.changed.wait(lock, [&] { return f.on_device == 0; });
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return *id = static_cast<unsigned long long>(context->device) + 1, CUDA_SUCCESS;
}
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  const Lock lock(fake().mutex);
  if (spoils_a_capture()) return misused("a capture is spoiled", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const CUstream stream = resolve(handle, handle == CU_STREAM_PER_THREAD);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // Of a stream that is being captured nobody may ask it, whatever the thread's mode (driver 580).
  if (stream->capture != nullptr) {
    stream->is_spoiled = true;
    return misused("a capture is spoiled", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return *id = stream->id, CUDA_SUCCESS;
}
// The one kernel is of the kind that libraries have, and as the real driver may, this loads it.
CUresult cuFuncGetName(const char**, CUfunction) {
  const Lock lock(fake().mutex);
  if (spoils_a_capture()) return misused("a capture is spoiled", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (kernel == reinterpret_cast<CUkernel>(fake_driver_moving_kernel())) return *name = "_Z4movePiS_", CUDA_SUCCESS;
  if (kernel != reinterpret_cast<CUkernel>(fake_driver_kernel())) return CUDA_ERROR_INVALID_HANDLE;
  return *name = "_Z9do_thingsPfi", CUDA_SUCCESS;
}
static CUresult launch_unexported(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                  unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  const cuLaunchKernel_params arguments{f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra};
  return around(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, arguments,
                [&] { return submit(stream, false, kernel_of(f, parameters)); });
}
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t flags,
                             CUdriverProcAddressQueryResult*) {
  std::string name = symbol;
  if (is_asked_to_fail("give") && name == "cuLaunchKernel")
    return *function = reinterpret_cast<void*>(&launch_unexported), CUDA_SUCCESS;
  for (const char* const newer : {"cuEventDestroy", "cuStreamDestroy", "cuMemcpyHtoDAsync", "cuGetProcAddress"})
    if (name == newer) name += "_v2";
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) name += "_ptsz";
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto find = reinterpret_cast<void* (*)(void*, const char*)>(::dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  *function = find(library, name.c_str());
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  const Lock lock(fake().mutex);
  return *stream = make_stream(current()), CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  const cuStreamDestroy_v2_params arguments{stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2, arguments, [&] {
    const Lock lock(fake().mutex);
    fake().streams.erase(stream);  // what is in it still runs
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamSynchronize(CUstream handle) {
  const cuStreamSynchronize_params arguments{handle};
  return around(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, arguments, [&] {
    Fake& f = fake();
    Lock lock(f.mutex);
    const CUstream stream = resolve(handle, false);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    f.changed.wait(lock, [&, last = stream->submitted] { return stream->ended >= last; });
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  const Lock lock(fake().mutex);
  const CUstream stream = resolve(handle, false);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return *context = stream->context, CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  const Lock lock(fake().mutex);
  const CUstream stream = resolve(handle, false);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = stream->capture != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetFlags(CUstream, unsigned* flags) { return *flags = CU_STREAM_NON_BLOCKING, CUDA_SUCCESS; }
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph*,
                                   const CUgraphNode**, size_t*) {
  const Lock lock(fake().mutex);
  const CUstream stream = resolve(handle, false);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = stream->capture != nullptr ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return *id = reinterpret_cast<cuuint64_t>(stream->capture), CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream handle) {
  const Lock lock(fake().mutex);
  const CUstream stream = resolve(handle, false);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return stream->ended >= stream->submitted ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  const cuStreamBeginCapture_v2_params arguments{stream, mode};
  return around(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, arguments, [&] {
    const Lock lock(fake().mutex);
    stream->capture = new CUgraph_st;
    stream->mode = mode;
    stream->is_spoiled = false;
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const cuStreamEndCapture_params arguments{stream, graph};
  return around(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, arguments, [&] {
    const Lock lock(fake().mutex);
    *graph = stream->capture;
    stream->capture = nullptr;
    return stream->is_spoiled ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  });
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, t_mode);
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  if (nodes == nullptr) {
    *count = graph->nodes.size() + static_cast<std::size_t>(graph->records);
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *count; ++i) nodes[i] = &graph->nodes[i];
  return CUDA_SUCCESS;
}
CUresult cuGraphClone(CUgraph* copy, CUgraph graph) { return *copy = new CUgraph_st(*graph), CUDA_SUCCESS; }
CUresult cuGraphDestroy(CUgraph graph) { return delete graph, CUDA_SUCCESS; }
CUresult cuGraphNodeGetType(CUgraphNode, CUgraphNodeType* type) {
  return *type = CU_GRAPH_NODE_TYPE_KERNEL, CUDA_SUCCESS;
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph*) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue* value) {
  return *value = {}, CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode, CUDA_KERNEL_NODE_PARAMS* parameters) {
  *parameters = {};
  parameters->kern = reinterpret_cast<CUkernel>(fake_driver_kernel());
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (parameters->func != nullptr) return misused("a node has two kernels", CUDA_ERROR_INVALID_VALUE);
  node->kernel.is_in_part = parameters->ctx != nullptr && parameters->ctx->primary != nullptr;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  const cuGraphInstantiateWithFlags_params arguments{exec, graph, flags};
  return around(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, arguments, [&] {
    auto* const made = new CUgraphExec_st;
    for (const CUgraphNode_st& node : graph->nodes) made->kernels.push_back(node.kernel);
    return *exec = made, CUDA_SUCCESS;
  });
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const cuGraphExecDestroy_params arguments{exec};
  return around(CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy, arguments, [&] {
    const Lock lock(fake().mutex);
    if (std::exchange(exec->is_gone, true)) return misused("a graph is destroyed twice", CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;  // its memory stays, to be recognised
  });
}
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned is_enabled) {
  const cuGraphNodeSetEnabled_params arguments{exec, node, is_enabled};
  return around(CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled, arguments, [&] {
    exec->kernels.clear();  // of the first node, which is all that programs of tests do
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) { return *value = 9, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active) {
  const Lock lock(fake().mutex);
  *flags = 0;
  *is_active = fake().primary[device] != nullptr && fake().primary[device]->is_alive ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuStreamGetPriority(CUstream, int* priority) { return *priority = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* resource, CUdevResourceType) {
  *resource = {};
  resource->sm.smCount = 132;
  return CUDA_SUCCESS;
}
CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                     CUdevResource* rest, unsigned, unsigned least) {
  if (is_asked_to_fail("part")) return CUDA_ERROR_NOT_SUPPORTED;
  if (least == 0 || least > input->sm.smCount || least % 8 != 0)
    return misused("a part of no size", CUDA_ERROR_INVALID_VALUE);
  *result = *rest = *input;
  result->sm.smCount = least;
  return *groups = 1, CUDA_SUCCESS;
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned) {
  return *description = reinterpret_cast<CUdevResourceDesc>(resources), CUDA_SUCCESS;
}
CUresult cuGreenCtxCreate(CUgreenCtx* made, CUdevResourceDesc description, CUdevice device, unsigned) {
  const Lock lock(fake().mutex);
  *made = new CUgreenCtx_st;
  (*made)->context = {device, true, fake().primary[device]};
  (*made)->units = reinterpret_cast<const CUdevResource*>(description)->sm.smCount;
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxDestroy(CUgreenCtx part) {
  const Lock lock(fake().mutex);
  part->context.is_alive = false;
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx part, unsigned flags, int) {
  const Lock lock(fake().mutex);
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  return *stream = make_stream(&part->context), CUDA_SUCCESS;
}
CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx part) { return *context = &part->context, CUDA_SUCCESS; }

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  const Lock lock(fake().mutex);
  if (is_asked_to_fail("make")) return CUDA_ERROR_OUT_OF_MEMORY;
  if (current() == nullptr) return misused("an event is made without a context", CUDA_ERROR_INVALID_CONTEXT);
  if ((flags & CU_EVENT_DISABLE_TIMING) == 0) return misused("an event has a clock that nobody reads", CUDA_SUCCESS);
  *event = new CUevent_st;
  (*event)->context = current();
  fake().events.insert(*event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream handle) {
  const cuEventRecord_params arguments{event, handle};
  return around(CUPTI_DRIVER_TRACE_CBID_cuEventRecord, arguments, [&] {
    Fake& f = fake();
    const Lock lock(f.mutex);
    if (is_asked_to_fail("record")) return CUDA_ERROR_UNKNOWN;
    const CUstream stream = resolve(handle, false);
    if (stream == nullptr || !f.events.contains(event))
      return misused("no such event or stream", CUDA_ERROR_INVALID_HANDLE);
    const CUcontext of_stream = stream->context->primary != nullptr ? stream->context->primary : stream->context;
    if (event->context != of_stream) return misused("an event of another context", CUDA_ERROR_INVALID_HANDLE);
    event->is_recorded = true;
    fake_memory_note(stream->id, "record");
    if (stream->capture != nullptr) {
      ++stream->capture->records;
      event->is_captured = true;
      if (std::getenv("FAKE_DRIVER_CAPTURES_EVENTS") != nullptr) return CUDA_SUCCESS;
      return misused("an event is recorded into a graph", CUDA_SUCCESS);
    }
    ++stream->submitted;
    stream->pending.push_back({{}, event, ++event->version, false, 0, nullptr});
    f.changed.notify_all();
    return CUDA_SUCCESS;
  });
}
// As in CUDA, a wait for an event that was never recorded is none.
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  const cuStreamWaitEvent_params arguments{handle, event, flags};
  return around(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, arguments, [&] {
    Fake& f = fake();
    const Lock lock(f.mutex);
    const CUstream stream = resolve(handle, false);
    if (stream == nullptr || !f.events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (event->is_captured != (stream->capture != nullptr))
      return misused("a wait from outside of a capture", CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    fake_memory_note(stream->id, "wait");
    if (event->version == 0) return CUDA_SUCCESS;
    ++stream->submitted;
    stream->pending.push_back({{}, event, event->version, true, 0, nullptr});
    f.changed.notify_all();
    return CUDA_SUCCESS;
  });
}
CUresult cuEventSynchronize(CUevent event) {
  const cuEventSynchronize_params arguments{event};
  return around(CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, arguments, [&] {
    Fake& f = fake();
    Lock lock(f.mutex);
    f.changed.wait(lock, [&, version = event->version] { return event->reached >= version; });
    return CUDA_SUCCESS;
  });
}
CUresult cuEventQuery(CUevent event) {
  const Lock lock(fake().mutex);
  if (is_asked_to_fail("query")) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (current() == nullptr) return misused("an event is asked without a context", CUDA_ERROR_INVALID_CONTEXT);
  if (spoils_a_capture()) return misused("a capture is spoiled", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (!fake().events.contains(event)) return misused("an event is asked that is gone", CUDA_ERROR_INVALID_HANDLE);
  if (!event->context->is_alive) return misused("a context is asked that is gone", CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return event->reached >= event->version ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventDestroy(CUevent event) {
  const Lock lock(fake().mutex);
  if (fake().events.erase(event) == 0) return misused("an event is destroyed twice", CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;  // its memory stays, to be recognised
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void** parameters, void** extra) {
  const cuLaunchKernel_params arguments{f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra};
  return around(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, arguments, [&] {
    return f == nullptr ? CUDA_ERROR_INVALID_HANDLE : submit(stream, false, kernel_of(f, parameters));
  });
}
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, CUstream stream, void** parameters, void** extra) {
  const cuLaunchKernel_ptsz_params arguments{f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra};
  return around(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, arguments,
                [&] { return submit(stream, true, kernel_of(f, parameters)); });
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  const cuLaunchKernelEx_params arguments{config, f, parameters, extra};
  return around(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, arguments,
                [&] { return submit(config->hStream, false, kernel_of(f, parameters)); });
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream, void** parameters) {
  const cuLaunchCooperativeKernel_params arguments{f, gx, gy, gz, bx, by, bz, shared, stream, parameters};
  return around(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, arguments,
                [&] { return submit(stream, false, kernel_of(f, parameters)); });
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const cuGraphLaunch_params arguments{exec, stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, arguments,
                [&] { return submit(stream, false, exec->kernels, exec); });
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  const cuGraphLaunch_ptsz_params arguments{exec, stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz, arguments,
                [&] { return submit(stream, true, exec->kernels, exec); });
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  const cuMemcpyHtoDAsync_v2_params arguments{to, from, bytes, stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, arguments,
                [&] { return submit(stream, false, {Kernel{10}}); });
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  const cuMemcpyHtoD_v2_params arguments{to, from, bytes};
  return around(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, arguments, [&] {
    const CUresult result = submit(nullptr, false, {Kernel{10}});
    Fake& f = fake();
    Lock lock(f.mutex);
    const CUstream stream = resolve(nullptr, false);
    f.changed.wait(lock, [&, last = stream->submitted] { return stream->ended >= last; });
    return result;
  });
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  const cuMemcpyHtoDAsync_v2_ptsz_params arguments{to, from, bytes, stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz, arguments,
                [&] { return submit(stream, true, {Kernel{10}}); });
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  const cuMemsetD8Async_params arguments{to, value, count, stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, arguments,
                [&] { return submit(stream, false, {Kernel{10}}); });
}
CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  const cuMemsetD8Async_ptsz_params arguments{to, value, count, stream};
  return around(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz, arguments,
                [&] { return submit(stream, true, {Kernel{10}}); });
}

}  // extern "C"
