// NVIDIA GPUs: fills the table from the driver's own library, opened at run time. Nothing here runs a command.
#include "device/gpu/cuda.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "device/gpu/gpu.h"
#include "device/gpu/libraries.h"
#include "device/list.h"
#include "weir_build.h"

#if WEIR_HAVE_CUDA
#include <cuda.h>

#include "device/gpu/compiler.h"
#include "device/gpu/cupti.h"

extern "C" const unsigned char weir_cuda_code[];

namespace weir {
namespace {

// Driver functions for the adapters below, besides the table's own entries. The suffix of a symbol is a version of the
// interface.
struct Driver : VendorLibrary {
  Driver() : VendorLibrary({"libcuda.so.1"}) {}
  decltype(&cuInit) init = need("cuInit");
  decltype(&cuDeviceGet) device_get = need("cuDeviceGet");
  decltype(&cuDeviceGetName) device_name = need("cuDeviceGetName");
  decltype(&cuDeviceGetAttribute) device_attribute = need("cuDeviceGetAttribute");
  decltype(&cuDeviceTotalMem) device_memory = need("cuDeviceTotalMem_v2");
  decltype(&cuDeviceGetPCIBusId) device_bus_id = need("cuDeviceGetPCIBusId");
  decltype(&cuDevicePrimaryCtxRetain) primary_retain = need("cuDevicePrimaryCtxRetain");
  decltype(&cuDevicePrimaryCtxRelease) primary_release = need("cuDevicePrimaryCtxRelease_v2");
  decltype(&cuGetErrorName) error_name = need("cuGetErrorName");
  decltype(&cuGetErrorString) error_string = need("cuGetErrorString");
  decltype(&cuLaunchHostFunc) launch_host = want("cuLaunchHostFunc");
};

Driver* g_driver = nullptr;  // written once, by fill_cuda()

std::string describe_cuda(int result) {
  const char *name = nullptr, *text = nullptr;
  if (g_driver->error_name(static_cast<CUresult>(result), &name) != 0 || name == nullptr)
    return fmt::format("CUDA error {}", result);
  if (g_driver->error_string(static_cast<CUresult>(result), &text) != 0 || text == nullptr) text = "no text";
  return fmt::format("CUDA error {} ({}): {}", result, name, text);
}

bool is_cuda_lost(int result) {
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
std::string cuda_version(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

int context_retain(GpuContext* context, int index) {
  int device = 0;
  const int result = g_driver->device_get(&device, index);
  return result != 0 ? result : g_driver->primary_retain(reinterpret_cast<CUcontext*>(context), device);
}

int context_release(int index) {
  int device = 0;
  const int result = g_driver->device_get(&device, index);
  return result != 0 ? result : g_driver->primary_release(device);
}

int facts(int index, GpuFacts* facts) {
  int device = 0, major = 0, minor = 0;
  char name[128] = {}, bus_id[32] = {};
  std::size_t bytes = 0;
  int result = g_driver->device_get(&device, index);
  const auto ask = [&](int* value, CUdevice_attribute attribute) {
    if (result == 0) result = g_driver->device_attribute(value, attribute, device);
  };
  if (result == 0) result = g_driver->device_name(name, sizeof name, device);
  if (result == 0) result = g_driver->device_memory(&bytes, device);
  ask(&facts->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  ask(&facts->copy_engines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  ask(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  ask(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (result != 0) return result;
  if (g_driver->device_bus_id(bus_id, sizeof bus_id, device) == 0) facts->bus_id = bus_id;
  facts->model = name;
  facts->memory_bytes = bytes;
  facts->has_fp16 = major * 10 + minor >= 53;
  facts->has_tf32 = facts->has_bf16 = major >= 8;
  facts->has_fp8_e4m3 = major * 10 + minor >= 89;
  facts->blas_workspace_bytes = std::size_t{major >= 9 ? 32u : 8u} << 20;
  facts->architecture = fmt::format("sm_{}{}", major, minor);
  int cache_bytes = 0;
  if (g_driver->device_attribute(&cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) == 0 && cache_bytes > 0)
    facts->cache_bytes = static_cast<std::uint64_t>(cache_bytes);
  return 0;
}

int launch_host(GpuStream stream, GpuHostCall* call) {
  return g_driver->launch_host(
      reinterpret_cast<CUstream>(stream),
      [](void* data) {
        auto& host = *static_cast<GpuHostCall*>(data);
        host.body(host);
      },
      call);
}

std::string reason_of_cuda(int result) {
  switch (result) {
    case CUDA_ERROR_STUB_LIBRARY:
      return "libcuda.so.1 is the toolkit's stub: no NVIDIA driver on this machine";
    case 35:
      return "driver too old for this program: CUDA error 35";  // cudaErrorInsufficientDriver
    case CUDA_ERROR_NO_DEVICE:
      return "no device: " + describe_cuda(result);
    default:
      return "the driver does not start: " + describe_cuda(result);
  }
}

// Fills an entry from the symbol that the driver exports: its suffix is a version of the interface, and the one named
// here matches the neutral signature.
#define WEIR_CUDA(entry, find, function, symbol)                                                              \
  static_assert(SameAbi<decltype(api.entry), decltype(&::function)>::value, symbol " has another signature"); \
  api.entry = library.find(symbol)

void bind_entries(Driver& library, GpuApi& api) {
  WEIR_CUDA(device_count, need, cuDeviceGetCount, "cuDeviceGetCount");
  WEIR_CUDA(driver_version, need, cuDriverGetVersion, "cuDriverGetVersion");
  WEIR_CUDA(context_set_current, need, cuCtxSetCurrent, "cuCtxSetCurrent");
  WEIR_CUDA(priority_range, need, cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange");

  WEIR_CUDA(memory_info, need, cuMemGetInfo, "cuMemGetInfo_v2");
  WEIR_CUDA(memory_allocate, need, cuMemAlloc, "cuMemAlloc_v2");
  WEIR_CUDA(memory_free, need, cuMemFree, "cuMemFree_v2");
  WEIR_CUDA(host_allocate, need, cuMemHostAlloc, "cuMemHostAlloc");
  WEIR_CUDA(host_free, need, cuMemFreeHost, "cuMemFreeHost");
  WEIR_CUDA(copy_to_device, need, cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  WEIR_CUDA(copy_to_host, need, cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  WEIR_CUDA(copy_on_device, need, cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  WEIR_CUDA(copy_any, need, cuMemcpyAsync, "cuMemcpyAsync");
  WEIR_CUDA(set_16, need, cuMemsetD16Async, "cuMemsetD16Async");
  WEIR_CUDA(set_32, need, cuMemsetD32Async, "cuMemsetD32Async");

  WEIR_CUDA(stream_create, need, cuStreamCreateWithPriority, "cuStreamCreateWithPriority");
  WEIR_CUDA(stream_destroy, need, cuStreamDestroy, "cuStreamDestroy_v2");
  WEIR_CUDA(stream_synchronize, need, cuStreamSynchronize, "cuStreamSynchronize");
  WEIR_CUDA(stream_query, want, cuStreamQuery, "cuStreamQuery");
  WEIR_CUDA(synchronize, need, cuCtxSynchronize, "cuCtxSynchronize");
  WEIR_CUDA(stream_wait, need, cuStreamWaitEvent, "cuStreamWaitEvent");
  WEIR_CUDA(stream_write, want, cuStreamWriteValue32, "cuStreamWriteValue32_v2");
  WEIR_CUDA(stream_wait_value, want, cuStreamWaitValue32, "cuStreamWaitValue32_v2");
  WEIR_CUDA(event_create, need, cuEventCreate, "cuEventCreate");
  WEIR_CUDA(event_destroy, need, cuEventDestroy, "cuEventDestroy_v2");
  WEIR_CUDA(event_record, need, cuEventRecord, "cuEventRecord");
  WEIR_CUDA(event_synchronize, need, cuEventSynchronize, "cuEventSynchronize");
  WEIR_CUDA(event_elapsed, need, cuEventElapsedTime, "cuEventElapsedTime");
  WEIR_CUDA(module_load, need, cuModuleLoadData, "cuModuleLoadData");
  WEIR_CUDA(module_unload, need, cuModuleUnload, "cuModuleUnload");
  WEIR_CUDA(function_get, need, cuModuleGetFunction, "cuModuleGetFunction");
  WEIR_CUDA(function_load, want, cuFuncLoad, "cuFuncLoad");
  api.function_parameter = library.want("cuFuncGetParamInfo");  // since CUDA 12.4
  static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == kGpuMaxSharedBytes);
  WEIR_CUDA(function_attribute, want, cuFuncSetAttribute, "cuFuncSetAttribute");
  WEIR_CUDA(launch, need, cuLaunchKernel, "cuLaunchKernel");
  WEIR_CUDA(occupancy, want, cuOccupancyMaxActiveBlocksPerMultiprocessor,
            "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  if (g_driver->launch_host != nullptr) api.launch_host = launch_host;

  WEIR_CUDA(capture_begin, need, cuStreamBeginCapture, "cuStreamBeginCapture_v2");
  WEIR_CUDA(capture_end, need, cuStreamEndCapture, "cuStreamEndCapture");
  WEIR_CUDA(graph_instantiate, need, cuGraphInstantiate, "cuGraphInstantiateWithFlags");
  WEIR_CUDA(graph_upload, want, cuGraphUpload, "cuGraphUpload");
  WEIR_CUDA(graph_launch, need, cuGraphLaunch, "cuGraphLaunch");
  WEIR_CUDA(graph_exec_destroy, need, cuGraphExecDestroy, "cuGraphExecDestroy");
  WEIR_CUDA(graph_destroy, need, cuGraphDestroy, "cuGraphDestroy");
  bind_recording(library, api);
  bind_parts(library, api);
}

#undef WEIR_CUDA

std::string fill_cuda(GpuApi& api) {
  g_driver = new Driver;
  // Found but unusable, e.g. built for another architecture: the loader's message is more helpful.
  if (g_driver->is_absent()) return "libcuda.so.1 not found: no NVIDIA driver on this machine";
  if (!g_driver->is_open()) return "libcuda.so.1 cannot be used: " + g_driver->error();
  api.backend = "cuda";
  api.vendor_name = "CUDA";
  api.queues_reason = "set by CUDA_DEVICE_MAX_CONNECTIONS, read once by the driver (default 8)";
  api.queue_variable = "CUDA_DEVICE_MAX_CONNECTIONS";
  api.default_hardware_queues = 8;
  api.max_hardware_queues = 32;
  api.code_hint =
      "It was compiled for other devices or by a newer toolkit than this driver knows: update the driver, or build "
      "Weir on this machine (WEIR_CUDA_ARCHITECTURES).";
  api.lost_hint = "a sanitizer (compute-sanitizer) or the kernel log (dmesg) says more";
  api.calls = {"cuLaunchKernel", "cuMemcpyAsync", "cuLaunchHostFunc", "cuGraphLaunch", "cuCtxSynchronize"};
  api.device_code = [](std::string*) -> const void* { return weir_cuda_code; };
  api.facts = facts;
  api.describe = describe_cuda;
  api.is_lost = is_cuda_lost;
  api.format_version = cuda_version;
  api.context_retain = context_retain;
  api.context_release = context_release;
  api.blas = open_cublas;
  api.fp8 = open_cublas_lt;
  api.management = open_nvml;
  api.collectives = open_nccl;
  api.activity = open_cupti;
  api.compiler = open_nvrtc;
  bind_entries(*g_driver, api);
  if (!g_driver->missing().empty())
    return fmt::format("driver too old for this program: libcuda.so.1 lacks {}", g_driver->missing());
  const int result = g_driver->init(0);
  return result == 0 ? "" : reason_of_cuda(result);
}

}  // namespace
}  // namespace weir

#else

namespace weir {
namespace {

std::string fill_cuda(GpuApi&) { return "left out of this build: " WEIR_CUDA_REASON; }

}  // namespace
}  // namespace weir

#endif

namespace weir {

const GpuApi* cuda_api(std::string* reason) {
  static const Opened<GpuApi> kOpened(fill_cuda);
  return kOpened.get(reason);
}

}  // namespace weir

namespace weir::device_list {
namespace {

DeviceType::Found find_cuda_gpus() { return find_gpus(cuda_api); }

std::unique_ptr<Device> open_cuda(const std::string& which, const DeviceOptions& options) {
  return open_gpu(cuda_api, "cuda", which, options);
}

}  // namespace

DeviceType cuda() { return {"cuda", "NVIDIA GPUs", find_cuda_gpus, open_cuda}; }

}  // namespace weir::device_list
