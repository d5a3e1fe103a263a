// AMD GPUs: fills the table from ROCm's own libraries, opened at run time. Nothing here runs a command. Differences
// between ROCm 5, 6 and 7 are detected entry by entry, never by a version number.
#include "device/gpu/hip.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "device/gpu/gpu.h"
#include "device/gpu/libraries.h"
#include "device/list.h"
#include "weir_build.h"

#if WEIR_HAVE_HIP
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_runtime_api.h>

#include "device/gpu/compiler.h"
#include "device/gpu/rocprofiler.h"

namespace weir {
namespace {

// Runtime functions for the adapters below, besides the table's own entries. The loader's own search comes first, then
// ROCm's usual folders.
struct Runtime : VendorLibrary {
  Runtime()
      : VendorLibrary(library_places({"", "/opt/rocm/lib/"},
                                     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"})) {}
  decltype(&hipInit) init = need("hipInit");
  decltype(&hipDeviceGetName) device_name = need("hipDeviceGetName");
  decltype(&hipDeviceGetAttribute) device_attribute = need("hipDeviceGetAttribute");
  decltype(&hipDeviceTotalMem) device_memory = need("hipDeviceTotalMem");
  decltype(&hipDeviceGetPCIBusId) device_bus_id = need("hipDeviceGetPCIBusId");
  decltype(&hipSetDevice) set_device = need("hipSetDevice");
  const char* (*error_name)(int) = need("hipGetErrorName");
  const char* (*error_string)(int) = need("hipGetErrorString");
  decltype(&hipMemcpyAsync) copy = need("hipMemcpyAsync");
  decltype(&hipLaunchHostFunc) launch_host = want("hipLaunchHostFunc");
  decltype(&hipStreamAddCallback) add_callback = want("hipStreamAddCallback");
  decltype(&hipGraphInstantiate) instantiate = want("hipGraphInstantiate");
};

Runtime* g_runtime = nullptr;  // written once, by fill_hip()

std::string describe_hip(int result) {
  const char* const name = g_runtime->error_name(result);
  const char* const text = g_runtime->error_string(result);
  if (name == nullptr || text == nullptr) return fmt::format("HIP error {}", result);
  return fmt::format("HIP error {} ({}): {}", result, name, text);
}

bool is_hip_lost(int result) {
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
std::string hip_version(int version) {
  return fmt::format("HIP {}.{}.{}", version / 10'000'000, version / 100'000 % 100, version % 100'000);
}

// HIP has no real contexts: a thread works on the device that it has set. Handles are numbers from 1.
int context_retain(GpuContext* context, int index) {
  *context = reinterpret_cast<GpuContext>(static_cast<std::uintptr_t>(index) + 1);
  return g_runtime->set_device(index);
}
int context_release(int) { return 0; }
int context_set_current(GpuContext context) {
  return g_runtime->set_device(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1);
}

// One attribute at a time: the structure of all properties changed in ROCm 6, the attributes' numbers did not.
int facts(int index, GpuFacts* facts) {
  char name[256] = {}, bus_id[32] = {};
  std::size_t bytes = 0;
  int result = g_runtime->device_name(name, sizeof name, index);
  if (result == 0) result = g_runtime->device_memory(&bytes, index);
  if (result == 0)
    result = g_runtime->device_attribute(&facts->multiprocessors, hipDeviceAttributeMultiprocessorCount, index);
  if (result != 0) return result;
  // ROCm 5 does not report its engines.
  if (g_runtime->device_attribute(&facts->copy_engines, hipDeviceAttributeAsyncEngineCount, index) != 0)
    facts->copy_engines = 0;
  if (g_runtime->device_bus_id(bus_id, sizeof bus_id, index) == 0) facts->bus_id = bus_id;
  facts->model = name[0] == '\0' ? "AMD GPU" : name;
  facts->memory_bytes = bytes;
  // Weir's bodies convert both types themselves, and rocBLAS multiplies both on all its GPUs.
  facts->has_fp16 = facts->has_bf16 = true;
  facts->blas_workspace_bytes = std::size_t{32} << 20;
  // `architecture` stays empty: only the structure contains it, and hipRTC compiles for the current device. So does
  // `cache_bytes`: HIP reports the L2, but not the Infinity Cache behind it.
  return 0;
}

int copy_any(GpuPointer to, GpuPointer from, std::size_t bytes, GpuStream stream) {
  return g_runtime->copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, hipMemcpyDefault,
                         reinterpret_cast<hipStream_t>(stream));
}

void run_call(void* data) {
  auto& call = *static_cast<GpuHostCall*>(data);
  call.body(call);
}

int launch_host(GpuStream stream, GpuHostCall* call) {
  return g_runtime->launch_host(reinterpret_cast<hipStream_t>(stream), run_call, call);
}
// ROCm 5.2 declares hipLaunchHostFunc and does not export it.
int add_callback(GpuStream stream, GpuHostCall* call) {
  return g_runtime->add_callback(
      reinterpret_cast<hipStream_t>(stream), [](hipStream_t, hipError_t, void* data) { run_call(data); }, call, 0);
}

int instantiate(GpuGraphExec* exec, GpuGraph graph, unsigned long long) {
  return g_runtime->instantiate(reinterpret_cast<hipGraphExec_t*>(exec), reinterpret_cast<hipGraph_t>(graph), nullptr,
                                nullptr, 0);
}

std::string reason_of_hip(int result) {
  switch (result) {
    case hipErrorInsufficientDriver:
      return "driver too old for this runtime: " + describe_hip(result);
    case hipErrorNoDevice:
    case hipErrorInvalidDevice:  // returned by hipInit of ROCm 5.2 without a device
      return "no device: " + describe_hip(result);
    default:
      return "the runtime does not start: " + describe_hip(result);
  }
}

#define WEIR_HIP(entry, find, function)                                                                          \
  static_assert(SameAbi<decltype(api.entry), decltype(&::function)>::value, #function " has another signature"); \
  api.entry = library.find(#function)

void bind_entries(Runtime& library, GpuApi& api) {
  WEIR_HIP(device_count, need, hipGetDeviceCount);
  WEIR_HIP(driver_version, need, hipRuntimeGetVersion);
  WEIR_HIP(priority_range, need, hipDeviceGetStreamPriorityRange);

  WEIR_HIP(memory_info, need, hipMemGetInfo);
  // Overloaded in the headers.
  static_assert(SameAbi<decltype(api.memory_allocate), hipError_t (*)(void**, std::size_t)>::value);
  static_assert(SameAbi<decltype(api.host_allocate), hipError_t (*)(void**, std::size_t, unsigned)>::value);
  api.memory_allocate = library.need("hipMalloc");
  api.host_allocate = library.need("hipHostMalloc");
  WEIR_HIP(memory_free, need, hipFree);
  WEIR_HIP(host_free, need, hipHostFree);
  WEIR_HIP(copy_to_device, need, hipMemcpyHtoDAsync);
  WEIR_HIP(copy_to_host, need, hipMemcpyDtoHAsync);
  WEIR_HIP(copy_on_device, need, hipMemcpyDtoDAsync);
  api.copy_any = copy_any;
  WEIR_HIP(set_16, need, hipMemsetD16Async);
  WEIR_HIP(set_32, need, hipMemsetD32Async);

  WEIR_HIP(stream_create, need, hipStreamCreateWithPriority);
  WEIR_HIP(stream_create_masked, want, hipExtStreamCreateWithCUMask);
  WEIR_HIP(stream_destroy, need, hipStreamDestroy);
  WEIR_HIP(stream_synchronize, need, hipStreamSynchronize);
  WEIR_HIP(stream_query, want, hipStreamQuery);
  WEIR_HIP(synchronize, need, hipDeviceSynchronize);
  WEIR_HIP(stream_wait, need, hipStreamWaitEvent);
  WEIR_HIP(stream_write, want, hipStreamWriteValue32);
  WEIR_HIP(event_create, need, hipEventCreateWithFlags);
  WEIR_HIP(event_destroy, need, hipEventDestroy);
  WEIR_HIP(event_record, need, hipEventRecord);
  WEIR_HIP(event_synchronize, need, hipEventSynchronize);
  WEIR_HIP(event_elapsed, need, hipEventElapsedTime);
  if (g_runtime->launch_host != nullptr) {
    api.launch_host = launch_host;
  } else if (g_runtime->add_callback != nullptr) {
    api.launch_host = add_callback;
    api.calls.launch_host = "hipStreamAddCallback";
  }

  WEIR_HIP(module_load, need, hipModuleLoadData);
  WEIR_HIP(module_unload, need, hipModuleUnload);
  WEIR_HIP(function_get, need, hipModuleGetFunction);
  WEIR_HIP(launch, need, hipModuleLaunchKernel);
  WEIR_HIP(occupancy, want, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor);

  // All of them or none: without graphs everything else still works.
  WEIR_HIP(capture_begin, want, hipStreamBeginCapture);
  WEIR_HIP(capture_end, want, hipStreamEndCapture);
  WEIR_HIP(graph_instantiate, want, hipGraphInstantiateWithFlags);
  if (api.graph_instantiate == nullptr && g_runtime->instantiate != nullptr) api.graph_instantiate = instantiate;
  api.graph_upload = library.want("hipGraphUpload");  // not declared in ROCm 5.2
  WEIR_HIP(graph_launch, want, hipGraphLaunch);
  WEIR_HIP(graph_exec_destroy, want, hipGraphExecDestroy);
  WEIR_HIP(graph_destroy, want, hipGraphDestroy);
  const bool has_all = api.capture_end != nullptr && api.graph_instantiate != nullptr && api.graph_launch != nullptr &&
                       api.graph_exec_destroy != nullptr && api.graph_destroy != nullptr;
  if (!has_all) api.capture_begin = nullptr;
}

#undef WEIR_HIP

std::string fill_hip(GpuApi& api) {
  g_runtime = new Runtime;
  if (g_runtime->is_absent()) return "libamdhip64.so not found: no ROCm on this machine";
  if (!g_runtime->is_open()) return "libamdhip64.so cannot be used: " + g_runtime->error();
  api.backend = "hip";
  api.vendor_name = "HIP";
  api.queues_reason = "set by GPU_MAX_HW_QUEUES, read once by the runtime (default 4)";
  api.queue_variable = "GPU_MAX_HW_QUEUES";
  api.default_hardware_queues = 4;
  api.max_hardware_queues = 32;
  api.code_hint =
      "It was compiled for " WEIR_HIP_BUILT ": build Weir with a hipcc that knows this GPU (WEIR_HIP_ARCHITECTURES).";
  api.lost_hint = "the kernel log (dmesg) and AMD_LOG_LEVEL=3 say more";
  api.calls = {"hipModuleLaunchKernel", "hipMemcpyAsync", "hipLaunchHostFunc", "hipGraphLaunch",
               "hipDeviceSynchronize"};
  api.device_code = hip_code;
  api.facts = facts;
  api.describe = describe_hip;
  api.is_lost = is_hip_lost;
  api.format_version = hip_version;
  api.context_retain = context_retain;
  api.context_release = context_release;
  api.context_set_current = context_set_current;
  api.blas = open_rocblas;
  api.management = open_rocm_smi;
  api.collectives = open_rccl;
  api.compiler = open_hiprtc;
  api.activity = open_rocprofiler;
  bind_entries(*g_runtime, api);
  if (!g_runtime->missing().empty())
    return fmt::format("ROCm too old for this program: {} lacks {}", g_runtime->name(), g_runtime->missing());
  const int result = g_runtime->init(0);
  return result == 0 ? "" : reason_of_hip(result);
}

}  // namespace
}  // namespace weir

#else

namespace weir {
namespace {

std::string fill_hip(GpuApi&) { return "left out of this build: " WEIR_HIP_REASON; }

}  // namespace
}  // namespace weir

#endif

namespace weir {

const GpuApi* hip_api(std::string* reason) {
  static const Opened<GpuApi> kOpened(fill_hip);
  return kOpened.get(reason);
}

}  // namespace weir

namespace weir::device_list {
namespace {

constexpr const char* kIgnoreVariable = "DEBUG_HIP_IGNORE_STREAM_PRIORITY";

DeviceType::Found find_hip_gpus() { return find_gpus(hip_api); }

// Recent ROCm ignores stream priorities unless configured otherwise; the runtime does not report which applies.
Capability priorities_of(const DeviceOptions& options) {
  const std::optional<std::string> text =
      options.variable == nullptr ? std::nullopt : options.variable(kIgnoreVariable);
  if (!text) return {true, fmt::format("recent ROCm ignores them unless {}=0 is set", kIgnoreVariable)};
  if (options.number(kIgnoreVariable) == 0) return {};
  return lacking(fmt::format("the runtime ignores them: {}={}", kIgnoreVariable, *text));
}

std::unique_ptr<Device> open_hip(const std::string& which, const DeviceOptions& options) {
  return open_gpu(hip_api, "hip", which, options, priorities_of(options));
}

}  // namespace

DeviceType hip() { return {"hip", "AMD GPUs", find_hip_gpus, open_hip}; }

}  // namespace weir::device_list
