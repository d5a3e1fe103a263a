// libweir_hip_gate.so: preloaded into other people's HIP programs by `weir sched run`; intercepts HIP's launches and
// holds them. Each function here has the name and the arguments of HIP's own, passes them on unchanged, and is found
// before it by the loader. Knows HIP's headers; the library is the program's.
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <dlfcn.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime_api.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <type_traits>

#include "submit/inject/join.h"

namespace weir::inject {
namespace {

// For a program, or a library that it opened, that loaded HIP without making its names global.
int find_hip(dl_phdr_info* info, std::size_t, void* path) {
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  const char* const name = slash == nullptr ? info->dlpi_name : slash + 1;
  if (std::strncmp(name, "libamdhip64", 11) != 0) return 0;
  *static_cast<std::string*>(path) = info->dlpi_name;
  return 1;
}

// Never returns one of this library's functions: that would call itself until the stack overflows.
void* unless_ours(void* found) noexcept {
  Dl_info theirs{}, ours{};
  if (found == nullptr || ::dladdr(found, &theirs) == 0 ||
      ::dladdr(reinterpret_cast<void*>(&unless_ours), &ours) == 0 || theirs.dli_fbase == ours.dli_fbase)
    return nullptr;
  return found;
}

void* find_real(const char* name) noexcept {
  if (void* const next = unless_ours(::dlsym(RTLD_NEXT, name)); next != nullptr) return next;
  try {
    std::string path;
    ::dl_iterate_phdr(find_hip, &path);
    void* const library = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return library == nullptr ? nullptr : unless_ours(::dlsym(library, name));
  } catch (const std::exception&) {
    return nullptr;
  }
}

template <class Function>
class Real;
// A function of HIP, found when it is first called.
template <class... Parameters>
class Real<hipError_t(Parameters...)> {
 public:
  // Some have C++ names in some versions: then the other name is tried.
  constexpr explicit Real(const char* name, const char* other = nullptr) : name_(name), other_(other) {}
  using Function = hipError_t (*)(Parameters...);

  Function get() noexcept {
    // Relaxed: every thread finds the same function.
    Function known = entry_.load(std::memory_order_relaxed);
    if (known != nullptr) return known;
    void* found = find_real(name_);
    if (found == nullptr && other_ != nullptr) found = find_real(other_);
    known = reinterpret_cast<Function>(found);
    entry_.store(known, std::memory_order_relaxed);
    return known;
  }
  template <class... Arguments>
  hipError_t call(Arguments... arguments) noexcept {
    const Function real = get();
    return real == nullptr ? hipErrorSharedObjectSymbolNotFound : real(arguments...);
  }

 private:
  const char* name_;
  const char* other_;
  std::atomic<Function> entry_{nullptr};
};

Real<hipError_t(hipEvent_t*, unsigned)> g_event_create{"hipEventCreateWithFlags"};
Real<hipError_t(hipEvent_t, hipStream_t)> g_event_record{"hipEventRecord"};
Real<hipError_t(hipEvent_t)> g_event_query{"hipEventQuery"};
Real<hipError_t(hipEvent_t)> g_event_destroy{"hipEventDestroy"};
Real<hipError_t(hipStream_t, hipStreamCaptureStatus*)> g_is_capturing{"hipStreamIsCapturing"};
Real<hipError_t(hipStreamCaptureMode*)> g_exchange_mode{"hipThreadExchangeStreamCaptureMode"};
Real<hipError_t(int*)> g_get_device{"hipGetDevice"};
Real<hipError_t(int)> g_set_device{"hipSetDevice"};
Real<hipError_t(hipStream_t, int*)> g_stream_device{"hipStreamGetDevice"};  // since ROCm 5.6
Real<hipError_t()> g_last_error{"hipGetLastError"};
Real<hipError_t()> g_peek_error{"hipPeekAtLastError"};

// HIP uses a device where CUDA uses a context; never null.
Context context_on(int device) noexcept { return reinterpret_cast<Context>(static_cast<std::intptr_t>(device) + 1); }
int device_of(Context context) noexcept { return static_cast<int>(reinterpret_cast<std::intptr_t>(context) - 1); }

bool begin(Context context, GateDriver::Visit* visit) noexcept {
  // A query's answer "still running" must not become the program's last error.
  visit->was_clean = g_peek_error.get() != nullptr && g_peek_error.call() == hipSuccess;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  if (g_exchange_mode.get() != nullptr && g_exchange_mode.call(&mode) == hipSuccess) {
    visit->mode = static_cast<int>(mode);
    visit->has_mode = true;
  }
  int device = -1;
  if (g_get_device.call(&device) == hipSuccess && device != device_of(context)) {
    visit->previous = context_on(device);
    visit->has_context = g_set_device.call(device_of(context)) == hipSuccess;
  }
  return true;
}

void end(const GateDriver::Visit& visit) noexcept {
  if (visit.has_context) (void)g_set_device.call(device_of(visit.previous));
  auto mode = static_cast<hipStreamCaptureMode>(visit.mode);
  if (visit.has_mode) (void)g_exchange_mode.call(&mode);
  if (visit.was_clean && g_last_error.get() != nullptr) (void)g_last_error.call();
}

Context context_of(void* stream) noexcept {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  if (g_is_capturing.call(static_cast<hipStream_t>(stream), &status) != hipSuccess) return nullptr;
  if (status != hipStreamCaptureStatusNone) return nullptr;
  int device = -1;
  if (stream == nullptr || g_stream_device.get() == nullptr ||
      g_stream_device.call(static_cast<hipStream_t>(stream), &device) != hipSuccess) {
    if (g_get_device.call(&device) != hipSuccess) return nullptr;
  }
  // The scheduler manages one device, the first that the program sees.
  return device == 0 ? context_on(device) : nullptr;
}

Event make() noexcept {
  hipEvent_t event = nullptr;
  return g_event_create.call(&event, unsigned{hipEventDisableTiming}) == hipSuccess ? event : nullptr;
}
bool record(Event event, void* stream) noexcept {
  return g_event_record.call(static_cast<hipEvent_t>(event), static_cast<hipStream_t>(stream)) == hipSuccess;
}
GateDriver::State query(Event event) noexcept {
  const hipError_t result = g_event_query.call(static_cast<hipEvent_t>(event));
  if (result == hipErrorNotReady) return GateDriver::State::running;
  return result == hipSuccess ? GateDriver::State::ended : GateDriver::State::lost;
}
void drop(Event event) noexcept { (void)g_event_destroy.call(static_cast<hipEvent_t>(event)); }

constexpr GateDriver kGateDriver{context_of, begin, end, make, record, query, drop};

// A program that uses HIP takes a seat at its first launch; shells and other programs without HIP take none.
LaunchGate* gate() noexcept {
  static std::once_flag once;
  static LaunchGate* known = nullptr;
  static std::atomic<bool> is_known{false};
  if (is_known.load(std::memory_order_acquire)) return known;  // pairs with the store below
  try {
    std::call_once(once, [] {
      const bool can_mark = g_event_create.get() != nullptr && g_event_record.get() != nullptr &&
                            g_event_query.get() != nullptr && g_is_capturing.get() != nullptr;
      if (can_mark)
        known = join(kGateDriver);
      else if (is_scheduled())
        report_unscheduled("HIP lacks events, or does not show which streams are being captured");
      is_known.store(true, std::memory_order_release);
    });
  } catch (const std::exception&) {
    return nullptr;
  }
  return known;
}

// HIP may call its own exported functions, which arrive here again: one launch is counted once.
thread_local int t_depth = 0;

template <class... Parameters>
hipError_t pass(Real<hipError_t(Parameters...)>& real, Stream stream,
                std::type_identity_t<Parameters>... parameters) noexcept {
  LaunchGate* const gate_or_null = t_depth == 0 ? gate() : nullptr;
  if (gate_or_null == nullptr || !gate_or_null->is_shared()) return real.call(parameters...);
  const Context context = gate_or_null->before(stream);
  ++t_depth;
  const hipError_t result = real.call(parameters...);
  --t_depth;
  if (context != nullptr) gate_or_null->after(stream, context, result == hipSuccess);
  return result;
}

Stream plain(hipStream_t stream) noexcept { return {stream, stream == hipStreamPerThread}; }
// The meaning of null in a program with a default stream per thread.
Stream per_thread(hipStream_t stream) noexcept { return plain(stream == nullptr ? hipStreamPerThread : stream); }

}  // namespace
}  // namespace weir::inject

using namespace weir::inject;

#define WEIR_EXPORT __attribute__((visibility("default")))

extern "C" {

WEIR_EXPORT hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared,
                                       hipStream_t stream) {
  static Real<decltype(hipLaunchKernel)> real{"hipLaunchKernel"};
  return pass(real, plain(stream), function, grid, block, parameters, shared, stream);
}
WEIR_EXPORT hipError_t hipLaunchKernel_spt(const void* function, dim3 grid, dim3 block, void** parameters,
                                           size_t shared, hipStream_t stream) {
  static Real<hipError_t(const void*, dim3, dim3, void**, size_t, hipStream_t)> real{"hipLaunchKernel_spt"};
  return pass(real, per_thread(stream), function, grid, block, parameters, shared, stream);
}
WEIR_EXPORT hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared,
                                          hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags) {
  static Real<decltype(hipExtLaunchKernel)> real{"hipExtLaunchKernel"};
  return pass(real, plain(stream), function, grid, block, parameters, shared, stream, start, stop, flags);
}
WEIR_EXPORT hipError_t hipLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** parameters,
                                                  unsigned shared, hipStream_t stream) {
  static Real<hipError_t(const void*, dim3, dim3, void**, unsigned, hipStream_t)> real{"hipLaunchCooperativeKernel"};
  return pass(real, plain(stream), function, grid, block, parameters, shared, stream);
}
WEIR_EXPORT hipError_t hipLaunchCooperativeKernel_spt(const void* function, dim3 grid, dim3 block, void** parameters,
                                                      std::uint32_t shared, hipStream_t stream) {
  static Real<hipError_t(const void*, dim3, dim3, void**, std::uint32_t, hipStream_t)> real{
      "hipLaunchCooperativeKernel_spt"};
  return pass(real, per_thread(stream), function, grid, block, parameters, shared, stream);
}
WEIR_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                             hipStream_t stream, void** parameters, void** extra) {
  static Real<decltype(hipModuleLaunchKernel)> real{"hipModuleLaunchKernel"};
  return pass(real, plain(stream), function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
              parameters, extra);
}
WEIR_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t stream) {
  static Real<decltype(hipGraphLaunch)> real{"hipGraphLaunch"};
  return pass(real, plain(stream), graph, stream);
}
WEIR_EXPORT hipError_t hipGraphLaunch_spt(hipGraphExec_t graph, hipStream_t stream) {
  static Real<hipError_t(hipGraphExec_t, hipStream_t)> real{"hipGraphLaunch_spt"};
  return pass(real, per_thread(stream), graph, stream);
}

WEIR_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                      hipStream_t stream) {
  static Real<decltype(hipMemcpyAsync)> real{"hipMemcpyAsync"};
  return pass(real, plain(stream), to, from, bytes, kind, stream);
}
WEIR_EXPORT hipError_t hipMemcpyAsync_spt(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                          hipStream_t stream) {
  static Real<hipError_t(void*, const void*, size_t, hipMemcpyKind, hipStream_t)> real{"hipMemcpyAsync_spt"};
  return pass(real, per_thread(stream), to, from, bytes, kind, stream);
}
WEIR_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void* from, size_t bytes, hipStream_t stream) {
  static Real<decltype(hipMemcpyHtoDAsync)> real{"hipMemcpyHtoDAsync"};
  return pass(real, plain(stream), to, from, bytes, stream);
}
WEIR_EXPORT hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  static Real<decltype(hipMemcpyDtoHAsync)> real{"hipMemcpyDtoHAsync"};
  return pass(real, plain(stream), to, from, bytes, stream);
}
WEIR_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
  static Real<decltype(hipMemcpyDtoDAsync)> real{"hipMemcpyDtoDAsync"};
  return pass(real, plain(stream), to, from, bytes, stream);
}
WEIR_EXPORT hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                          hipStream_t stream) {
  static Real<decltype(hipMemcpyPeerAsync)> real{"hipMemcpyPeerAsync"};
  return pass(real, plain(stream), to, to_device, from, from_device, bytes, stream);
}
WEIR_EXPORT hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                        size_t height, hipMemcpyKind kind, hipStream_t stream) {
  static Real<decltype(hipMemcpy2DAsync)> real{"hipMemcpy2DAsync"};
  return pass(real, plain(stream), to, to_pitch, from, from_pitch, width, height, kind, stream);
}
WEIR_EXPORT hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* parameters, hipStream_t stream) {
  static Real<decltype(hipMemcpy3DAsync)> real{"hipMemcpy3DAsync"};
  return pass(real, plain(stream), parameters, stream);
}
WEIR_EXPORT hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D* copy, hipStream_t stream) {
  static Real<decltype(hipMemcpyParam2DAsync)> real{"hipMemcpyParam2DAsync"};
  return pass(real, plain(stream), copy, stream);
}
WEIR_EXPORT hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  static Real<decltype(hipMemsetAsync)> real{"hipMemsetAsync"};
  return pass(real, plain(stream), to, value, bytes, stream);
}
WEIR_EXPORT hipError_t hipMemsetAsync_spt(void* to, int value, size_t bytes, hipStream_t stream) {
  static Real<hipError_t(void*, int, size_t, hipStream_t)> real{"hipMemsetAsync_spt"};
  return pass(real, per_thread(stream), to, value, bytes, stream);
}
WEIR_EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
  static Real<decltype(hipMemsetD8Async)> real{"hipMemsetD8Async"};
  return pass(real, plain(stream), to, value, count, stream);
}
WEIR_EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream) {
  static Real<decltype(hipMemsetD16Async)> real{"hipMemsetD16Async"};
  return pass(real, plain(stream), to, value, count, stream);
}
WEIR_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  static Real<decltype(hipMemsetD32Async)> real{"hipMemsetD32Async"};
  return pass(real, plain(stream), to, value, count, stream);
}
WEIR_EXPORT hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                        hipStream_t stream) {
  static Real<decltype(hipMemset2DAsync)> real{"hipMemset2DAsync"};
  return pass(real, plain(stream), to, pitch, value, width, height, stream);
}
WEIR_EXPORT hipError_t hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent, hipStream_t stream) {
  static Real<decltype(hipMemset3DAsync)> real{"hipMemset3DAsync"};
  return pass(real, plain(stream), to, value, extent, stream);
}

WEIR_EXPORT hipError_t hipDeviceReset() {
  static Real<decltype(hipDeviceReset)> real{"hipDeviceReset"};
  if (LaunchGate* const held = gate(); held != nullptr) held->forget();
  return real.call();
}

}  // extern "C"

// In hip_ext.h without extern "C", so programs ask for its C++ name (ROCm 5.2's library exports only that).
WEIR_EXPORT hipError_t hipExtModuleLaunchKernel(hipFunction_t function, std::uint32_t grid_x, std::uint32_t grid_y,
                                                std::uint32_t grid_z, std::uint32_t block_x, std::uint32_t block_y,
                                                std::uint32_t block_z, size_t shared, hipStream_t stream,
                                                void** parameters, void** extra, hipEvent_t start, hipEvent_t stop,
                                                std::uint32_t flags) {
  static Real<decltype(hipExtModuleLaunchKernel)> real{
      "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
      "hipExtModuleLaunchKernel"};
  return pass(real, plain(stream), function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
              parameters, extra, start, stop, flags);
}
