// AMD GPUs: fills the table from ROCm's own libraries, opened at run time. Nothing here runs a command. What differs
// between ROCm 5, 6 and 7 is asked of the library, entry by entry; a version number decides nothing.
#include "device/gpu/hip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "device/gpu/gpu.h"
#include "device/list.h"
#include "weir_build.h"

namespace weir {
namespace {

constexpr const char* kQueueVariable = "GPU_MAX_HW_QUEUES";
constexpr const char* kIgnoreVariable = "DEBUG_HIP_IGNORE_STREAM_PRIORITY";
constexpr int kDefaultQueues = 4, kMostQueues = 32;

}  // namespace
}  // namespace weir

#if WEIR_HAVE_HIP
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_runtime_api.h>

#include "device/gpu/compiler.h"
#include "device/gpu/hip_code.h"
#include "device/gpu/nccl.h"
#include "device/gpu/rocblas.h"
#include "device/gpu/rocm_smi.h"
#include "device/vendor_library.h"

namespace weir {
namespace {

// What the adapters below call besides the table's own entries.
struct Entries {
  int (*init)(unsigned) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;
  int (*device_bus_id)(char*, int, int) = nullptr;
  int (*set_device)(int) = nullptr;
  const char* (*error_name)(int) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*copy)(GpuPointer, GpuPointer, std::size_t, int, GpuStream) = nullptr;
  int (*launch_host)(GpuStream, void (*)(void*), void*) = nullptr;
  int (*add_callback)(GpuStream, void (*)(GpuStream, int, void*), void*, unsigned) = nullptr;
  int (*instantiate)(GpuGraphExec*, GpuGraph, void*, char*, std::size_t) = nullptr;
};

Entries g_entries;  // written once, by Opened's constructor

std::string describe(int result) {
  const char* const name = g_entries.error_name(result);
  const char* const text = g_entries.error_string(result);
  if (name == nullptr || text == nullptr) return fmt::format("HIP error {}", result);
  return fmt::format("HIP error {} ({}): {}", result, name, text);
}

bool is_lost(int result) {
  switch (result) {
    case hipErrorNoDevice:
    case hipErrorECCNotCorrectable:
    case hipErrorIllegalAddress:
    case hipErrorLaunchTimeOut:
    case hipErrorContextIsDestroyed:
    case hipErrorAssert:
    case hipErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

// 50221153 is HIP 5.2.21153, 60342134 is 6.3.42134
std::string format_version(int version) {
  return fmt::format("HIP {}.{}.{}", version / 10'000'000, version / 100'000 % 100, version % 100'000);
}

// There are no contexts to speak of: a thread works on the device that it has set. Handles are numbers from 1.
int context_retain(GpuContext* context, int index) {
  *context = reinterpret_cast<GpuContext>(static_cast<std::uintptr_t>(index) + 1);
  return g_entries.set_device(index);
}
int context_release(int) { return 0; }
int context_set_current(GpuContext context) {
  return g_entries.set_device(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1);
}

// By single entries: the structure of all properties has another layout since ROCm 6. The attributes' numbers stayed.
int facts(int index, GpuFacts* facts) {
  char name[256] = {}, bus_id[32] = {};
  std::size_t bytes = 0;
  int result = g_entries.device_name(name, sizeof name, index);
  if (result == 0) result = g_entries.device_memory(&bytes, index);
  if (result == 0)
    result = g_entries.device_attribute(&facts->multiprocessors, hipDeviceAttributeMultiprocessorCount, index);
  if (result != 0) return result;
  // ROCm 5 does not know its engines.
  if (g_entries.device_attribute(&facts->copy_engines, hipDeviceAttributeAsyncEngineCount, index) != 0)
    facts->copy_engines = 0;
  if (g_entries.device_bus_id(bus_id, sizeof bus_id, index) == 0) facts->bus_id = bus_id;
  facts->model = name[0] == '\0' ? "AMD GPU" : name;
  facts->memory_bytes = bytes;
  // Our bodies convert both by themselves, and rocBLAS multiplies both on all its GPUs.
  facts->has_fp16 = facts->has_bf16 = true;
  facts->blas_workspace_bytes = std::size_t{32} << 20;
  // `architecture` stays empty: only the structure names it, and hipRTC compiles for the current device. `cache_bytes`
  // as well: HIP tells of the L2, not of the Infinity Cache behind it.
  return 0;
}

int copy_any(GpuPointer to, GpuPointer from, std::size_t bytes, GpuStream stream) {
  return g_entries.copy(to, from, bytes, hipMemcpyDefault, stream);
}

void run_call(void* data) {
  auto& call = *static_cast<GpuHostCall*>(data);
  call.body(call);
}

int launch_host(GpuStream stream, GpuHostCall* call) { return g_entries.launch_host(stream, run_call, call); }
// ROCm 5.2 declares hipLaunchHostFunc and does not export it.
int add_callback(GpuStream stream, GpuHostCall* call) {
  return g_entries.add_callback(stream, [](GpuStream, int, void* data) { run_call(data); }, call, 0);
}

int instantiate(GpuGraphExec* exec, GpuGraph graph, unsigned long long) {
  return g_entries.instantiate(exec, graph, nullptr, nullptr, 0);
}

std::string reason_of(int result) {
  switch (result) {
    case hipErrorInsufficientDriver:
      return "driver too old for this runtime: " + describe(result);
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:  // what hipInit of ROCm 5.2 says where there is none
      return "no device: " + describe(result);
    default:
      return "the runtime does not start: " + describe(result);
  }
}

// The loader's own search first, then where ROCm is installed.
std::vector<std::string> places() {
  std::vector<std::string> names;
  for (const char* folder : {"", "/opt/rocm/lib/"})
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})
      names.push_back(std::string(folder) + name);
  return names;
}

#define WEIR_HIP_CHECK(entry, function, symbol) \
  static_assert(SameAbi<decltype(entry), function>::value, symbol " has another signature")
#define WEIR_HIP_NEED(entry, function)                     \
  WEIR_HIP_CHECK(entry, decltype(&::function), #function); \
  library.need(entry, #function)
#define WEIR_HIP_WANT(entry, function)                     \
  WEIR_HIP_CHECK(entry, decltype(&::function), #function); \
  library.want(entry, #function)

struct Opened {
  Opened() {
    VendorLibrary library(places());
    if (!library.is_open()) {
      reason = library.is_absent() ? "libamdhip64.so not found: no ROCm on this machine"
                                   : "libamdhip64.so cannot be used: " + library.error();
      return;
    }
    bind_device(library);
    bind_memory(library);
    bind_streams(library);
    bind_modules(library);
    bind_graphs(library);
    if (!library.missing().empty()) {
      reason = fmt::format("ROCm too old for this program: {} lacks {}", library.name(), library.missing());
      return;
    }
    if (const int result = g_entries.init(0); result != 0) {
      reason = reason_of(result);
      return;
    }
    is_complete = true;
  }

  void bind_device(VendorLibrary& library) {
    api.backend = "hip";
    api.vendor_name = "HIP";
    api.queues_reason = "set by GPU_MAX_HW_QUEUES, read once by the runtime (default 4)";
    api.queue_variable = kQueueVariable;
    api.most_hardware_queues = kMostQueues;
    api.code_hint =
        "It was compiled for " WEIR_HIP_BUILT ": build Weir with a hipcc that knows this GPU (WEIR_HIP_ARCHITECTURES).";
    api.lost_hint = "the kernel log (dmesg) and AMD_LOG_LEVEL=3 say more";
    api.calls = {"hipModuleLaunchKernel", "hipMemcpyAsync", "hipLaunchHostFunc", "hipGraphLaunch",
                 "hipDeviceSynchronize"};
    api.device_code = hip_code;
    api.facts = facts;
    api.describe = describe;
    api.is_lost = is_lost;
    api.format_version = format_version;
    api.context_retain = context_retain;
    api.context_release = context_release;
    api.context_set_current = context_set_current;
    api.blas = open_rocblas;
    api.management = open_rocm_smi;
    api.collectives = open_rccl;
    api.compiler = open_hiprtc;
    WEIR_HIP_NEED(g_entries.init, hipInit);
    WEIR_HIP_NEED(g_entries.device_name, hipDeviceGetName);
    WEIR_HIP_NEED(g_entries.device_attribute, hipDeviceGetAttribute);
    WEIR_HIP_NEED(g_entries.device_memory, hipDeviceTotalMem);
    WEIR_HIP_NEED(g_entries.device_bus_id, hipDeviceGetPCIBusId);
    WEIR_HIP_NEED(g_entries.set_device, hipSetDevice);
    library.need(g_entries.error_name, "hipGetErrorName");
    library.need(g_entries.error_string, "hipGetErrorString");
    WEIR_HIP_NEED(api.device_count, hipGetDeviceCount);
    WEIR_HIP_NEED(api.driver_version, hipRuntimeGetVersion);
    WEIR_HIP_NEED(api.priority_range, hipDeviceGetStreamPriorityRange);
  }

  void bind_memory(VendorLibrary& library) {
    WEIR_HIP_NEED(api.memory_info, hipMemGetInfo);
    // Overloaded in the headers.
    WEIR_HIP_CHECK(api.memory_allocate, hipError_t(*)(void**, std::size_t), "hipMalloc");
    library.need(api.memory_allocate, "hipMalloc");
    WEIR_HIP_CHECK(api.host_allocate, hipError_t(*)(void**, std::size_t, unsigned), "hipHostMalloc");
    library.need(api.host_allocate, "hipHostMalloc");
    WEIR_HIP_NEED(api.memory_free, hipFree);
    WEIR_HIP_NEED(api.host_free, hipHostFree);
    WEIR_HIP_NEED(api.copy_to_device, hipMemcpyHtoDAsync);
    WEIR_HIP_NEED(api.copy_to_host, hipMemcpyDtoHAsync);
    WEIR_HIP_NEED(api.copy_on_device, hipMemcpyDtoDAsync);
    WEIR_HIP_NEED(g_entries.copy, hipMemcpyAsync);
    api.copy_any = copy_any;
    WEIR_HIP_NEED(api.set_16, hipMemsetD16Async);
    WEIR_HIP_NEED(api.set_32, hipMemsetD32Async);
  }

  void bind_streams(VendorLibrary& library) {
    WEIR_HIP_NEED(api.stream_create, hipStreamCreateWithPriority);
    WEIR_HIP_WANT(api.stream_create_masked, hipExtStreamCreateWithCUMask);
    WEIR_HIP_NEED(api.stream_destroy, hipStreamDestroy);
    WEIR_HIP_NEED(api.stream_synchronize, hipStreamSynchronize);
    WEIR_HIP_WANT(api.stream_query, hipStreamQuery);
    WEIR_HIP_NEED(api.synchronize, hipDeviceSynchronize);
    WEIR_HIP_NEED(api.stream_wait, hipStreamWaitEvent);
    WEIR_HIP_WANT(api.stream_write, hipStreamWriteValue32);
    WEIR_HIP_NEED(api.event_create, hipEventCreateWithFlags);
    WEIR_HIP_NEED(api.event_destroy, hipEventDestroy);
    WEIR_HIP_NEED(api.event_record, hipEventRecord);
    WEIR_HIP_NEED(api.event_synchronize, hipEventSynchronize);
    WEIR_HIP_NEED(api.event_elapsed, hipEventElapsedTime);
    WEIR_HIP_WANT(g_entries.launch_host, hipLaunchHostFunc);
    WEIR_HIP_WANT(g_entries.add_callback, hipStreamAddCallback);
    if (g_entries.launch_host != nullptr) {
      api.launch_host = launch_host;
    } else if (g_entries.add_callback != nullptr) {
      api.launch_host = add_callback;
      api.calls.launch_host = "hipStreamAddCallback";
    }
  }

  void bind_modules(VendorLibrary& library) {
    WEIR_HIP_NEED(api.module_load, hipModuleLoadData);
    WEIR_HIP_NEED(api.module_unload, hipModuleUnload);
    WEIR_HIP_NEED(api.function_get, hipModuleGetFunction);
    WEIR_HIP_NEED(api.launch, hipModuleLaunchKernel);
    WEIR_HIP_WANT(api.occupancy, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);
  }

  // All of them or none: without graphs everything else still works.
  void bind_graphs(VendorLibrary& library) {
    WEIR_HIP_WANT(api.capture_begin, hipStreamBeginCapture);
    WEIR_HIP_WANT(api.capture_end, hipStreamEndCapture);
    WEIR_HIP_WANT(api.graph_instantiate, hipGraphInstantiateWithFlags);
    WEIR_HIP_WANT(g_entries.instantiate, hipGraphInstantiate);
    if (api.graph_instantiate == nullptr && g_entries.instantiate != nullptr) api.graph_instantiate = instantiate;
    library.want(api.graph_upload, "hipGraphUpload");  // not declared in ROCm 5.2
    WEIR_HIP_WANT(api.graph_launch, hipGraphLaunch);
    WEIR_HIP_WANT(api.graph_exec_destroy, hipGraphExecDestroy);
    WEIR_HIP_WANT(api.graph_destroy, hipGraphDestroy);
    const bool has_all = api.capture_end != nullptr && api.graph_instantiate != nullptr &&
                         api.graph_launch != nullptr && api.graph_exec_destroy != nullptr &&
                         api.graph_destroy != nullptr;
    if (!has_all) api.capture_begin = nullptr;
  }

  GpuApi api;
  std::string reason;
  bool is_complete = false;
};

#undef WEIR_HIP_CHECK
#undef WEIR_HIP_NEED
#undef WEIR_HIP_WANT

}  // namespace

const GpuApi* hip_api(std::string* reason) {
  static const Opened kOpened;
  if (kOpened.is_complete) return &kOpened.api;
  if (reason != nullptr) *reason = kOpened.reason;
  return nullptr;
}

}  // namespace weir

#else

namespace weir {

const GpuApi* hip_api(std::string* reason) {
  if (reason != nullptr) *reason = "left out of this build: " WEIR_HIP_REASON;
  return nullptr;
}

}  // namespace weir

#endif

namespace weir::device_list {
namespace {

DeviceType::Found find() { return find_gpus(hip_api); }

// Recent ROCm ignores stream priorities unless told otherwise; the runtime does not say which it does.
Capability priorities_of(const DeviceOptions& options) {
  const std::optional<std::string> text =
      options.variable == nullptr ? std::nullopt : options.variable(kIgnoreVariable);
  if (!text) return {true, fmt::format("recent ROCm ignores them unless {}=0 is set", kIgnoreVariable)};
  if (options.number(kIgnoreVariable) == 0) return {};
  return lacking(fmt::format("the runtime ignores them: {}={}", kIgnoreVariable, *text));
}

std::unique_ptr<Device> open(const std::string& which, const DeviceOptions& options) {
  const int queues = options.number(kQueueVariable);
  return open_gpu(hip_api, "hip", which,
                  {.hardware_queues = queues == 0 ? kDefaultQueues : std::clamp(queues, 1, kMostQueues),
                   .compute_units = options.compute_units,
                   .rest_stream = options.rest_stream,
                   .priorities = priorities_of(options),
                   .communicator = options.communicator,
                   .stages_collectives = options.stages_collectives});
}

}  // namespace

DeviceType hip() { return {"hip", "AMD GPUs", find, open}; }

}  // namespace weir::device_list
