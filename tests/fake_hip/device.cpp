// Devices, memory and errors of the fake HIP runtime, and what a test may set.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fake_hip.h"
#include "state.h"

using namespace weir::fake_hip;

extern const int kFakeHipVersion;  // variant.cpp

namespace weir::fake_hip {
namespace {

thread_local int current = 0;

// WEIR_FAKE_HIP="devices=2,init_error=35,lost_after=1000,memory=268435456,cu=104"
Settings parse(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::int64_t value =
        equals == std::string_view::npos ? -1 : std::atoll(std::string(part.substr(equals + 1)).c_str());
    if (name == "devices") {
      settings.devices = static_cast<int>(value);
    } else if (name == "init_error") {
      settings.init_error = static_cast<int>(value);
    } else if (name == "lost_after") {
      settings.lost_after = value;
    } else if (name == "memory") {
      settings.memory = static_cast<std::uint64_t>(value);
    } else if (name == "cu") {
      settings.compute_units = static_cast<int>(value);
    } else if (name == "turns") {
      settings.takes_turns = value != 0;
    } else {
      std::fprintf(stderr, "WEIR_FAKE_HIP: what is '%s'?\n", std::string(part).c_str());
      std::abort();
    }
  }
  return settings;
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// ROCm sets memory by kernels.
constexpr FakeHipWork kFill = {FakeHipWork::kernel, "__amd_rocclr_fillBufferAligned.kd", 0};

// As ROCm, which looks once whether there is a profiler in the process.
const FakeHipObserver* find_observer() {
  void* const library = dlopen("librocprofiler-sdk.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const attach = dlsym(library, "weir_fake_rocprofiler_attach");
  return attach == nullptr ? nullptr : reinterpret_cast<const FakeHipObserver* (*)()>(attach)();
}

// As ROCm, which reads its variables when it is loaded and keeps to them.
void start() {
  State& s = state();
  if (s.is_started) return;
  s.is_started = true;
  s.settings = parse(variable("WEIR_FAKE_HIP"));
  const int queues = std::atoi(std::string(variable("GPU_MAX_HW_QUEUES")).c_str());
  if (queues > 0) s.queues_per_pool = queues;
  s.observer = find_observer();
  s.ignores_priority = variable("DEBUG_HIP_IGNORE_STREAM_PRIORITY") == "1";
}

// What every call begins with: the error that there is, or 0. The lock is held.
hipError_t trouble() {
  start();
  if (state().settings.init_error != 0) return static_cast<hipError_t>(state().settings.init_error);
  return static_cast<hipError_t>(state().lost);
}

hipError_t allocate(void** pointer, std::size_t bytes, bool is_host) {
  const Lock lock(state().mutex);
  if (const hipError_t error = trouble(); error != hipSuccess) return error;
  State& s = state();
  Device& device = s.devices[current];
  if (!is_host && device.used_bytes + bytes > s.settings.memory) return hipErrorOutOfMemory;
  *pointer = std::aligned_alloc(256, std::max<std::size_t>(1, (bytes + 255) / 256) * 256);
  if (*pointer == nullptr) return hipErrorOutOfMemory;
  if (!is_host) device.used_bytes += bytes;
  (is_host ? s.host_memory : s.memory)[*pointer] = {bytes, current};
  return hipSuccess;
}

hipError_t release(std::map<void*, Allocation>& kept, void* pointer) {
  Lock lock(state().mutex);
  if (pointer == nullptr) return hipSuccess;
  const auto found = kept.find(pointer);
  if (found == kept.end()) return hipErrorInvalidValue;
  // As HIP: whatever may still use it has ended first.
  const Allocation allocation = found->second;
  await_all(lock);
  if (&kept == &state().memory) state().devices[allocation.device].used_bytes -= allocation.bytes;
  kept.erase(pointer);
  std::free(pointer);
  return static_cast<hipError_t>(state().lost);
}

hipError_t copy(void* to, const void* from, std::size_t bytes, hipStream_t stream) {
  if (to == nullptr || from == nullptr) return bytes == 0 ? hipSuccess : hipErrorInvalidValue;
  return submit(stream, "hipMemcpyAsync", {FakeHipWork::copy, "", bytes}, [=](int) { std::memmove(to, from, bytes); });
}

hipError_t check_device(int index) {
  if (const hipError_t error = trouble(); error != hipSuccess) return error;
  return index < 0 || index >= state().settings.devices ? hipErrorInvalidDevice : hipSuccess;
}

struct ErrorText {
  hipError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {hipErrorInsufficientDriver, "hipErrorInsufficientDriver", "driver version is insufficient for runtime version"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorIllegalState, "hipErrorIllegalState", "the operation cannot be performed in the present state"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "capture was not ended in the same stream"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "operation not permitted on an event last recorded in a capture"},
};

const ErrorText& text_of(hipError_t error) {
  static constexpr ErrorText kUnknown = {hipErrorUnknown, "hipErrorUnknown", "unknown error"};
  const auto* const found =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorText& each) { return each.error == error; });
  return found == std::end(kErrors) ? kUnknown : *found;
}

}  // namespace

int current_device() { return current; }

}  // namespace weir::fake_hip

WEIR_FAKE_EXPORT void weir_fake_hip_configure(const char* settings) {
  const Lock lock(state().mutex);
  start();
  State& s = state();
  s.settings = parse(*settings == '\0' ? variable("WEIR_FAKE_HIP") : settings);
  s.lost = 0;
  s.kernels = 0;
  s.streams_made = 0;
  s.log.clear();
}

WEIR_FAKE_EXPORT const char* weir_fake_hip_log() {
  static thread_local std::string kept;
  const Lock lock(state().mutex);
  kept = state().log;
  return kept.c_str();
}

WEIR_FAKE_EXPORT const char* weir_fake_hip_leaks() {
  static thread_local std::string kept;
  const Lock lock(state().mutex);
  kept.clear();
  const State& s = state();
  std::size_t streams = s.streams.size();
  for (const auto& [index, device] : s.devices) streams -= device.default_stream != nullptr ? 1 : 0;
  for (const auto& [name, count] : {std::pair("buffers", s.memory.size()),
                                    {"host buffers", s.host_memory.size()},
                                    {"streams", streams},
                                    {"events", s.events.size()}})
    if (count != 0) kept += std::to_string(count) + " " + name + " ";
  return kept.c_str();
}

WEIR_FAKE_EXPORT hipError_t hipInit(unsigned flags) {
  const Lock lock(state().mutex);
  if (flags != 0) return hipErrorInvalidValue;
  if (const hipError_t error = trouble(); error != hipSuccess) return error;
  return state().settings.devices == 0 ? hipErrorNoDevice : hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipGetDeviceCount(int* count) {
  const Lock lock(state().mutex);
  if (const hipError_t error = trouble(); error != hipSuccess) return error;
  *count = state().settings.devices;
  return *count == 0 ? hipErrorNoDevice : hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipDriverGetVersion(int* version) {
  *version = kFakeHipVersion;
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  *version = kFakeHipVersion;
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  const Lock lock(state().mutex);
  *device = ordinal;
  return check_device(ordinal);
}

WEIR_FAKE_EXPORT hipError_t hipDeviceGetName(char* name, int size, hipDevice_t device) {
  const Lock lock(state().mutex);
  std::snprintf(name, static_cast<std::size_t>(size), "AMD Instinct MI300X (fake)");
  return check_device(device);
}

WEIR_FAKE_EXPORT hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  const Lock lock(state().mutex);
  if (const hipError_t error = check_device(device); error != hipSuccess) return error;
  switch (attribute) {
    case hipDeviceAttributeMultiprocessorCount:
      return *value = state().settings.compute_units, hipSuccess;
    case hipDeviceAttributeAsyncEngineCount:  // CUDA's alone, say the headers of HIP 5
      return *value = 2, kFakeHipVersion < 60000000 ? hipErrorInvalidValue : hipSuccess;
    case hipDeviceAttributeComputeCapabilityMajor:
      return *value = 9, hipSuccess;
    case hipDeviceAttributeComputeCapabilityMinor:
      return *value = 4, hipSuccess;
    case hipDeviceAttributeWarpSize:
      return *value = 64, hipSuccess;
    case hipDeviceAttributeMaxThreadsPerBlock:
      return *value = 1024, hipSuccess;
    default:
      return hipErrorInvalidValue;
  }
}

WEIR_FAKE_EXPORT hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device) {
  const Lock lock(state().mutex);
  *bytes = state().settings.memory;
  return check_device(device);
}

WEIR_FAKE_EXPORT hipError_t hipDeviceGetPCIBusId(char* text, int size, int device) {
  const Lock lock(state().mutex);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02x:00.0", 0xc1 + device);
  return check_device(device);
}

WEIR_FAKE_EXPORT hipError_t hipSetDevice(int device) {
  const Lock lock(state().mutex);
  if (const hipError_t error = check_device(device); error != hipSuccess) return error;
  current = device;
  return hipSuccess;
}

WEIR_FAKE_EXPORT hipError_t hipGetDevice(int* device) {
  const Lock lock(state().mutex);
  *device = current;
  return trouble();
}

WEIR_FAKE_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const Lock lock(state().mutex);
  *least = 1;
  *greatest = -1;
  return trouble();
}

WEIR_FAKE_EXPORT hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(state().mutex);
  *total = state().settings.memory;
  *free = *total - std::min<std::size_t>(*total, state().devices[current].used_bytes);
  return trouble();
}

WEIR_FAKE_EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes, false); }
WEIR_FAKE_EXPORT hipError_t hipFree(void* pointer) { return release(state().memory, pointer); }
WEIR_FAKE_EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned) {
  return allocate(pointer, bytes, true);
}
WEIR_FAKE_EXPORT hipError_t hipHostFree(void* pointer) { return release(state().host_memory, pointer); }

WEIR_FAKE_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t bytes, hipStream_t stream) {
  return copy(to, from, bytes, stream);
}
WEIR_FAKE_EXPORT hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  return copy(to, from, bytes, stream);
}
WEIR_FAKE_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                                               hipStream_t stream) {
  return copy(to, from, bytes, stream);
}
WEIR_FAKE_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                           hipStream_t stream) {
  if (kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
  return copy(to, from, bytes, stream);
}

WEIR_FAKE_EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count,
                                              hipStream_t stream) {
  return submit(stream, "hipMemsetD16Async", kFill,
                [=](int) { std::fill_n(static_cast<unsigned short*>(to), count, value); });
}
WEIR_FAKE_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return submit(stream, "hipMemsetD32Async", kFill, [=](int) { std::fill_n(static_cast<int*>(to), count, value); });
}

// Those that the host waits for.
WEIR_FAKE_EXPORT hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  if (const hipError_t error = hipMemcpyAsync(to, from, bytes, kind, nullptr); error != hipSuccess) return error;
  return hipStreamSynchronize(nullptr);
}
WEIR_FAKE_EXPORT hipError_t hipMemset(void* to, int value, size_t bytes) {
  const hipError_t error = submit(nullptr, "hipMemset", kFill, [=](int) { std::memset(to, value, bytes); });
  return error != hipSuccess ? error : hipStreamSynchronize(nullptr);
}

// Memory and modules stay.
WEIR_FAKE_EXPORT hipError_t hipDeviceReset() {
  Lock lock(state().mutex);
  await_all(lock);
  State& s = state();
  std::vector<std::shared_ptr<ihipStream_t>> streams;
  for (const auto& [handle, stream] : s.streams)
    if (stream->device == current) streams.push_back(stream);
  for (const auto& stream : streams) drop_stream(*stream);
  s.devices[current].default_stream = nullptr;
  for (const hipEvent_t event : s.events) delete event;
  s.events.clear();
  return trouble();
}

WEIR_FAKE_EXPORT const char* hipGetErrorName(hipError_t error) { return text_of(error).name; }
WEIR_FAKE_EXPORT const char* hipGetErrorString(hipError_t error) { return text_of(error).text; }
