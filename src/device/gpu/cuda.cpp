// NVIDIA GPUs: fills the table from the driver's own library, opened at run time. Nothing here runs a command.
#include "device/gpu/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "device/gpu/gpu.h"
#include "device/list.h"
#include "weir_build.h"

namespace weir {
namespace {

constexpr const char* kQueueVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr int kMostQueues = 32;

}  // namespace
}  // namespace weir

#if WEIR_HAVE_CUDA
#include <cuda.h>

#include "device/gpu/compiler.h"
#include "device/gpu/cublas.h"
#include "device/gpu/cuda_parts.h"
#include "device/gpu/cuda_recording.h"
#include "device/gpu/cupti.h"
#include "device/gpu/nccl.h"
#include "device/gpu/nvml.h"
#include "device/vendor_library.h"

extern "C" const unsigned char weir_cuda_code[];

namespace weir {
namespace {

// What the adapters below call besides the table's own entries.
struct Entries {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_memory)(std::size_t*, int) = nullptr;
  int (*device_bus_id)(char*, int, int) = nullptr;
  int (*primary_retain)(GpuContext*, int) = nullptr;
  int (*primary_release)(int) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  int (*launch_host)(GpuStream, void (*)(void*), void*) = nullptr;
};

Entries g_entries;  // written once, by Opened's constructor

std::string describe(int result) {
  const char *name = nullptr, *text = nullptr;
  if (g_entries.error_name(result, &name) != 0 || name == nullptr) return fmt::format("CUDA error {}", result);
  if (g_entries.error_string(result, &text) != 0 || text == nullptr) text = "no text";
  return fmt::format("CUDA error {} ({}): {}", result, name, text);
}

bool is_lost(int result) {
  switch (result) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

// 13000 is CUDA 13.0, 12040 is 12.4
std::string format_version(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

int context_retain(GpuContext* context, int index) {
  int device = 0;
  const int result = g_entries.device_get(&device, index);
  return result != 0 ? result : g_entries.primary_retain(context, device);
}

int context_release(int index) {
  int device = 0;
  const int result = g_entries.device_get(&device, index);
  return result != 0 ? result : g_entries.primary_release(device);
}

int facts(int index, GpuFacts* facts) {
  int device = 0, major = 0, minor = 0;
  char name[128] = {}, bus_id[32] = {};
  std::size_t bytes = 0;
  int result = g_entries.device_get(&device, index);
  const auto ask = [&](int* value, CUdevice_attribute attribute) {
    if (result == 0) result = g_entries.device_attribute(value, attribute, device);
  };
  if (result == 0) result = g_entries.device_name(name, sizeof name, device);
  if (result == 0) result = g_entries.device_memory(&bytes, device);
  ask(&facts->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  ask(&facts->copy_engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  ask(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  ask(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (result != 0) return result;
  if (g_entries.device_bus_id(bus_id, sizeof bus_id, device) == 0) facts->bus_id = bus_id;
  facts->model = name;
  facts->memory_bytes = bytes;
  facts->has_fp16 = major * 10 + minor >= 53;
  facts->has_tf32 = facts->has_bf16 = major >= 8;
  facts->blas_workspace_bytes = std::size_t{major >= 9 ? 32u : 8u} << 20;
  facts->architecture = fmt::format("sm_{}{}", major, minor);
  int cache_bytes = 0;
  if (g_entries.device_attribute(&cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) == 0 && cache_bytes > 0)
    facts->cache_bytes = static_cast<std::uint64_t>(cache_bytes);
  return 0;
}

int launch_host(GpuStream stream, GpuHostCall* call) {
  return g_entries.launch_host(
      stream,
      [](void* data) {
        auto& host = *static_cast<GpuHostCall*>(data);
        host.body(host);
      },
      call);
}

std::string reason_of(int result) {
  switch (result) {
    case CUDA_ERROR_STUB_LIBRARY:
      return "libcuda.so.1 is the toolkit's stub: no NVIDIA driver on this machine";
    case 35:
      return "driver too old for this program: CUDA error 35";  // cudaErrorInsufficientDriver
    case CUDA_ERROR_NO_DEVICE:
      return "no device: " + describe(result);
    default:
      return "the driver does not start: " + describe(result);
  }
}

// Finds an entry under the name that the driver exports: the suffix is a version of the interface, and the one named
// here is what the neutral signature means.
#define WEIR_CUDA_NEED(entry, function, symbol)                                                           \
  static_assert(SameAbi<decltype(entry), decltype(&::function)>::value, symbol " has another signature"); \
  library.need(entry, symbol)
#define WEIR_CUDA_WANT(entry, function, symbol)                                                           \
  static_assert(SameAbi<decltype(entry), decltype(&::function)>::value, symbol " has another signature"); \
  library.want(entry, symbol)

struct Opened {
  Opened() {
    VendorLibrary library({"libcuda.so.1"});
    if (!library.is_open()) {
      // Found but refused, e.g. built for another architecture: then the loader's words say more.
      reason = library.is_absent() ? "libcuda.so.1 not found: no NVIDIA driver on this machine"
                                   : "libcuda.so.1 cannot be used: " + library.error();
      return;
    }
    bind_device(library);
    bind_memory(library);
    bind_streams(library);
    bind_graphs(library);
    if (!library.missing().empty()) {
      reason = fmt::format("driver too old for this program: libcuda.so.1 lacks {}", library.missing());
      return;
    }
    if (const int result = g_entries.init(0); result != 0) {
      reason = reason_of(result);
      return;
    }
    is_complete = true;
  }

  void bind_device(VendorLibrary& library) {
    api.backend = "cuda";
    api.vendor_name = "CUDA";
    api.queues_reason = "set by CUDA_DEVICE_MAX_CONNECTIONS, read once by the driver (default 8)";
    api.queue_variable = kQueueVariable;
    api.most_hardware_queues = kMostQueues;
    api.code_hint =
        "It was compiled for other devices or by a newer toolkit than this driver knows: update the driver, or build "
        "Weir on this machine (WEIR_CUDA_ARCHITECTURES).";
    api.lost_hint = "a sanitizer (compute-sanitizer) or the kernel log (dmesg) says more";
    api.calls = {"cuLaunchKernel", "cuMemcpyAsync", "cuLaunchHostFunc", "cuGraphLaunch", "cuCtxSynchronize"};
    api.device_code = [](std::string*) -> const void* { return weir_cuda_code; };
    api.facts = facts;
    api.describe = describe;
    api.is_lost = is_lost;
    api.format_version = format_version;
    api.context_retain = context_retain;
    api.context_release = context_release;
    api.blas = open_cublas;
    api.management = open_nvml;
    api.collectives = open_nccl;
    api.activity = open_cupti;
    api.compiler = open_nvrtc;
    WEIR_CUDA_NEED(g_entries.init, cuInit, "cuInit");
    WEIR_CUDA_NEED(g_entries.device_get, cuDeviceGet, "cuDeviceGet");
    WEIR_CUDA_NEED(g_entries.device_name, cuDeviceGetName, "cuDeviceGetName");
    WEIR_CUDA_NEED(g_entries.device_attribute, cuDeviceGetAttribute, "cuDeviceGetAttribute");
    WEIR_CUDA_NEED(g_entries.device_memory, cuDeviceTotalMem, "cuDeviceTotalMem_v2");
    WEIR_CUDA_NEED(g_entries.device_bus_id, cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId");
    WEIR_CUDA_NEED(g_entries.primary_retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    WEIR_CUDA_NEED(g_entries.primary_release, cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    WEIR_CUDA_NEED(g_entries.error_name, cuGetErrorName, "cuGetErrorName");
    WEIR_CUDA_NEED(g_entries.error_string, cuGetErrorString, "cuGetErrorString");
    WEIR_CUDA_NEED(api.device_count, cuDeviceGetCount, "cuDeviceGetCount");
    WEIR_CUDA_NEED(api.driver_version, cuDriverGetVersion, "cuDriverGetVersion");
    WEIR_CUDA_NEED(api.context_set_current, cuCtxSetCurrent, "cuCtxSetCurrent");
    WEIR_CUDA_NEED(api.priority_range, cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange");
  }

  void bind_memory(VendorLibrary& library) {
    WEIR_CUDA_NEED(api.memory_info, cuMemGetInfo, "cuMemGetInfo_v2");
    WEIR_CUDA_NEED(api.memory_allocate, cuMemAlloc, "cuMemAlloc_v2");
    WEIR_CUDA_NEED(api.memory_free, cuMemFree, "cuMemFree_v2");
    WEIR_CUDA_NEED(api.host_allocate, cuMemHostAlloc, "cuMemHostAlloc");
    WEIR_CUDA_NEED(api.host_free, cuMemFreeHost, "cuMemFreeHost");
    WEIR_CUDA_NEED(api.copy_to_device, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
    WEIR_CUDA_NEED(api.copy_to_host, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
    WEIR_CUDA_NEED(api.copy_on_device, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
    WEIR_CUDA_NEED(api.copy_any, cuMemcpyAsync, "cuMemcpyAsync");
    WEIR_CUDA_NEED(api.set_16, cuMemsetD16Async, "cuMemsetD16Async");
    WEIR_CUDA_NEED(api.set_32, cuMemsetD32Async, "cuMemsetD32Async");
  }

  void bind_streams(VendorLibrary& library) {
    WEIR_CUDA_NEED(api.stream_create, cuStreamCreateWithPriority, "cuStreamCreateWithPriority");
    WEIR_CUDA_NEED(api.stream_destroy, cuStreamDestroy, "cuStreamDestroy_v2");
    WEIR_CUDA_NEED(api.stream_synchronize, cuStreamSynchronize, "cuStreamSynchronize");
    WEIR_CUDA_WANT(api.stream_query, cuStreamQuery, "cuStreamQuery");
    WEIR_CUDA_NEED(api.synchronize, cuCtxSynchronize, "cuCtxSynchronize");
    WEIR_CUDA_NEED(api.stream_wait, cuStreamWaitEvent, "cuStreamWaitEvent");
    WEIR_CUDA_WANT(api.stream_write, cuStreamWriteValue32, "cuStreamWriteValue32_v2");
    WEIR_CUDA_WANT(api.stream_wait_value, cuStreamWaitValue32, "cuStreamWaitValue32_v2");
    WEIR_CUDA_NEED(api.event_create, cuEventCreate, "cuEventCreate");
    WEIR_CUDA_NEED(api.event_destroy, cuEventDestroy, "cuEventDestroy_v2");
    WEIR_CUDA_NEED(api.event_record, cuEventRecord, "cuEventRecord");
    WEIR_CUDA_NEED(api.event_synchronize, cuEventSynchronize, "cuEventSynchronize");
    WEIR_CUDA_NEED(api.event_elapsed, cuEventElapsedTime, "cuEventElapsedTime");
    WEIR_CUDA_NEED(api.module_load, cuModuleLoadData, "cuModuleLoadData");
    WEIR_CUDA_NEED(api.module_unload, cuModuleUnload, "cuModuleUnload");
    WEIR_CUDA_NEED(api.function_get, cuModuleGetFunction, "cuModuleGetFunction");
    WEIR_CUDA_WANT(api.function_load, cuFuncLoad, "cuFuncLoad");
    library.want(api.function_parameter, "cuFuncGetParamInfo");  // since CUDA 12.4
    static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == kGpuMostSharedBytes);
    WEIR_CUDA_WANT(api.function_attribute, cuFuncSetAttribute, "cuFuncSetAttribute");
    WEIR_CUDA_NEED(api.launch, cuLaunchKernel, "cuLaunchKernel");
    WEIR_CUDA_WANT(api.occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,
                   "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    WEIR_CUDA_WANT(g_entries.launch_host, cuLaunchHostFunc, "cuLaunchHostFunc");
    if (g_entries.launch_host != nullptr) api.launch_host = launch_host;
  }

  void bind_graphs(VendorLibrary& library) {
    WEIR_CUDA_NEED(api.capture_begin, cuStreamBeginCapture, "cuStreamBeginCapture_v2");
    WEIR_CUDA_NEED(api.capture_end, cuStreamEndCapture, "cuStreamEndCapture");
    WEIR_CUDA_NEED(api.graph_instantiate, cuGraphInstantiate, "cuGraphInstantiateWithFlags");
    WEIR_CUDA_WANT(api.graph_upload, cuGraphUpload, "cuGraphUpload");
    WEIR_CUDA_NEED(api.graph_launch, cuGraphLaunch, "cuGraphLaunch");
    WEIR_CUDA_NEED(api.graph_exec_destroy, cuGraphExecDestroy, "cuGraphExecDestroy");
    WEIR_CUDA_NEED(api.graph_destroy, cuGraphDestroy, "cuGraphDestroy");
    bind_recording(library, api);
    bind_parts(library, api);
  }

  GpuApi api;
  std::string reason;
  bool is_complete = false;
};

#undef WEIR_CUDA_NEED
#undef WEIR_CUDA_WANT

}  // namespace

const GpuApi* cuda_api(std::string* reason) {
  static const Opened kOpened;
  if (kOpened.is_complete) return &kOpened.api;
  if (reason != nullptr) *reason = kOpened.reason;
  return nullptr;
}

}  // namespace weir

#else

namespace weir {

const GpuApi* cuda_api(std::string* reason) {
  if (reason != nullptr) *reason = "left out of this build: " WEIR_CUDA_REASON;
  return nullptr;
}

}  // namespace weir

#endif

namespace weir::device_list {
namespace {

DeviceType::Found find() { return find_gpus(cuda_api); }

// What the driver makes of CUDA_DEVICE_MAX_CONNECTIONS, which it reads once: 8 where it is not set, 32 at most.
int queues_of(const DeviceOptions& options) {
  const int connections = options.number(kQueueVariable);
  return connections == 0 ? 8 : std::clamp(connections, 1, kMostQueues);
}

std::unique_ptr<Device> open(const std::string& which, const DeviceOptions& options) {
  return open_gpu(cuda_api, "cuda", which,
                  {.hardware_queues = queues_of(options),
                   .compute_units = options.compute_units,
                   .rest_stream = options.rest_stream,
                   .priorities = {},
                   .communicator = options.communicator,
                   .stages_collectives = options.stages_collectives});
}

}  // namespace

DeviceType cuda() { return {"cuda", "NVIDIA GPUs", find, open}; }

}  // namespace weir::device_list
