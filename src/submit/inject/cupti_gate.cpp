// The part of libweir_cupti.so that holds launches: in CUPTI's callbacks, before the driver sees them.
#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "submit/inject/cupti_library.h"
#include "submit/inject/join.h"

namespace weir::inject {
namespace {

// Where in a call's arguments its stream is.
struct Call {
  enum class Kind : std::uint8_t { none, stream, config, list, teardown };
  Kind kind = Kind::none;
  bool is_per_thread = false;  // the meaning of the null stream in it
  std::uint16_t offset = 0;
};
struct ListedCall {
  CUpti_CallbackId id;
  Call call;
};

#define WEIR_LAUNCH(name)                                                                           \
  {                                                                                                 \
    CUPTI_DRIVER_TRACE_CBID_##name, { Call::Kind::stream, false, offsetof(name##_params, hStream) } \
  }
// Both variants of a call: for legacy programs, and for those with a default stream per thread.
#define WEIR_LAUNCHES(name)                                                                                    \
  WEIR_LAUNCH(name), {                                                                                         \
    CUPTI_DRIVER_TRACE_CBID_##name##_ptsz, { Call::Kind::stream, true, offsetof(name##_ptsz_params, hStream) } \
  }
#define WEIR_TEARDOWN(name) {CUPTI_DRIVER_TRACE_CBID_##name, {Call::Kind::teardown, false, 0}}

constexpr ListedCall kCalls[] = {
    WEIR_LAUNCHES(cuLaunchKernel),
    WEIR_LAUNCHES(cuLaunchCooperativeKernel),
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, {Call::Kind::config, false, offsetof(cuLaunchKernelEx_params, config)}},
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
     {Call::Kind::config, true, offsetof(cuLaunchKernelEx_ptsz_params, config)}},
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
     {Call::Kind::list, false, offsetof(cuLaunchCooperativeKernelMultiDevice_params, launchParamsList)}},
    WEIR_LAUNCHES(cuGraphLaunch),
    WEIR_LAUNCHES(cuMemcpyAsync),
    WEIR_LAUNCHES(cuMemcpyPeerAsync),
    WEIR_LAUNCHES(cuMemcpyHtoDAsync_v2),
    WEIR_LAUNCHES(cuMemcpyDtoHAsync_v2),
    WEIR_LAUNCHES(cuMemcpyDtoDAsync_v2),
    WEIR_LAUNCHES(cuMemcpyHtoAAsync_v2),
    WEIR_LAUNCHES(cuMemcpyAtoHAsync_v2),
    WEIR_LAUNCHES(cuMemcpy2DAsync_v2),
    WEIR_LAUNCHES(cuMemcpy3DAsync_v2),
    WEIR_LAUNCHES(cuMemcpy3DPeerAsync),
#if CUDA_VERSION >= 12080
    WEIR_LAUNCHES(cuMemcpyBatchAsync),
    WEIR_LAUNCHES(cuMemcpy3DBatchAsync),
#endif
#if CUDA_VERSION >= 13000
    WEIR_LAUNCHES(cuMemcpyBatchAsync_v2),
    WEIR_LAUNCHES(cuMemcpy3DBatchAsync_v2),
#endif
    WEIR_LAUNCHES(cuMemsetD8Async),
    WEIR_LAUNCHES(cuMemsetD16Async),
    WEIR_LAUNCHES(cuMemsetD32Async),
    WEIR_LAUNCHES(cuMemsetD2D8Async),
    WEIR_LAUNCHES(cuMemsetD2D16Async),
    WEIR_LAUNCHES(cuMemsetD2D32Async),
    WEIR_TEARDOWN(cuCtxDestroy),
    WEIR_TEARDOWN(cuCtxDestroy_v2),
    WEIR_TEARDOWN(cuDevicePrimaryCtxRelease),
    WEIR_TEARDOWN(cuDevicePrimaryCtxRelease_v2),
    WEIR_TEARDOWN(cuDevicePrimaryCtxReset),
    WEIR_TEARDOWN(cuDevicePrimaryCtxReset_v2),
#if CUDA_VERSION >= 12040
    WEIR_TEARDOWN(cuGreenCtxDestroy),  // its streams have a context of their own
#endif
};
#undef WEIR_LAUNCH
#undef WEIR_LAUNCHES
#undef WEIR_TEARDOWN

constexpr std::size_t kMaxCalls = 1024;

constexpr std::array<Call, kMaxCalls> calls_by_id() {
  std::array<Call, kMaxCalls> calls{};
  for (const ListedCall& listed : kCalls) calls[listed.id] = listed.call;
  return calls;
}
constexpr std::array<Call, kMaxCalls> kCallsById = calls_by_id();

// The driver's own functions, found in the library that the program has loaded.
struct Driver {
  CUresult (*event_create)(CUevent*, unsigned) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_query)(CUevent) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*stream_context)(CUstream, CUcontext*) = nullptr;
  CUresult (*exchange_capture_mode)(CUstreamCaptureMode*) = nullptr;
  CUresult (*current)(CUcontext*) = nullptr;
  CUresult (*push)(CUcontext) = nullptr;
  CUresult (*pop)(CUcontext*) = nullptr;
  CUresult (*device)(CUdevice*) = nullptr;
};
Driver g_driver;
LaunchGate* g_gate = nullptr;
std::atomic<std::uint32_t> g_teardowns{0};

bool begin(Context wanted, GateDriver::Visit* visit) noexcept {
  // Querying an event would invalidate a capture that this thread, or in global mode any other, has begun.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (g_driver.exchange_capture_mode(&mode) != CUDA_SUCCESS) return false;
  visit->mode = static_cast<int>(mode);
  visit->has_mode = true;
  CUcontext context = nullptr;
  if (g_driver.current(&context) != CUDA_SUCCESS) context = nullptr;
  if (context == static_cast<CUcontext>(wanted)) return true;
  if (g_driver.push(static_cast<CUcontext>(wanted)) != CUDA_SUCCESS) {
    g_driver.exchange_capture_mode(&mode);
    return false;
  }
  visit->has_context = true;
  return true;
}

void end(const GateDriver::Visit& visit) noexcept {
  CUcontext context = nullptr;
  if (visit.has_context) g_driver.pop(&context);
  auto mode = static_cast<CUstreamCaptureMode>(visit.mode);
  if (visit.has_mode) g_driver.exchange_capture_mode(&mode);
}

// The scheduler manages one device, the first that the program sees. A thread has few contexts, mostly one.
bool is_on_scheduled_device(CUcontext context) noexcept {
  struct Known {
    CUcontext context = nullptr;
    std::uint32_t teardowns = 0;
    bool is_scheduled = false;
  };
  thread_local Known t_known;
  const std::uint32_t teardowns = g_teardowns.load(std::memory_order_relaxed);  // a new context may have an old address
  if (t_known.context == context && t_known.teardowns == teardowns) return t_known.is_scheduled;
  GateDriver::Visit visit;
  if (!begin(context, &visit)) return false;
  CUdevice device = -1;
  if (g_driver.device(&device) != CUDA_SUCCESS) device = -1;
  end(visit);
  t_known = {context, teardowns, device == 0};
  return t_known.is_scheduled;
}

Context context_of(void* stream) noexcept {
  // For the legacy stream this is an error while a stream that it would wait for is captured: the launch will then fail
  // by itself.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (g_driver.stream_is_capturing(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS) return nullptr;
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return nullptr;
  CUcontext context = nullptr;
  if (g_driver.stream_context(static_cast<CUstream>(stream), &context) != CUDA_SUCCESS) return nullptr;
  return context != nullptr && is_on_scheduled_device(context) ? context : nullptr;
}

Event make() noexcept {
  CUevent event = nullptr;
  return g_driver.event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event : nullptr;
}
bool record(Event event, void* stream) noexcept {
  return g_driver.event_record(static_cast<CUevent>(event), static_cast<CUstream>(stream)) == CUDA_SUCCESS;
}
GateDriver::State query(Event event) noexcept {
  const CUresult result = g_driver.event_query(static_cast<CUevent>(event));
  if (result == CUDA_ERROR_NOT_READY) return GateDriver::State::running;
  return result == CUDA_SUCCESS ? GateDriver::State::ended : GateDriver::State::lost;
}
void drop(Event event) noexcept { g_driver.event_destroy(static_cast<CUevent>(event)); }

constexpr GateDriver kGateDriver{context_of, begin, end, make, record, query, drop};

Stream stream_of(const Call& call, const void* arguments) noexcept {
  const void* const field = static_cast<const char*>(arguments) + call.offset;
  CUstream stream = nullptr;
  if (call.kind == Call::Kind::stream) {
    stream = *static_cast<const CUstream*>(field);
  } else if (call.kind == Call::Kind::config) {
    const auto* const config = *static_cast<const CUlaunchConfig* const*>(field);
    if (config != nullptr) stream = config->hStream;
  } else {
    // One launch on several devices; the first one represents all.
    const auto& all = *static_cast<const cuLaunchCooperativeKernelMultiDevice_params*>(arguments);
    if (all.launchParamsList != nullptr && all.numDevices > 0) stream = all.launchParamsList[0].hStream;
  }
  if (stream == nullptr) stream = call.is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  return {stream, stream == CU_STREAM_PER_THREAD};
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* raw) {
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  const bool is_entry = data.callbackSite == CUPTI_API_ENTER;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id >= kMaxCalls || kCallsById[id].kind == Call::Kind::teardown) {
    // Before the driver has taken any lock for it: forget() waits for threads that are calling the driver.
    if (is_entry) g_teardowns.fetch_add(1, std::memory_order_relaxed);
    if (is_entry) g_gate->forget();
    return;
  }
  if (is_entry) {
    // Zero or a context, for the exit of this same call.
    *data.correlationData = 0;
    if (!g_gate->is_shared()) return;
    const Context context = g_gate->before(stream_of(kCallsById[id], data.functionParams));
    *data.correlationData = reinterpret_cast<std::uintptr_t>(context);
  } else if (*data.correlationData != 0) {
    const bool was_launched = *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS;
    g_gate->after(stream_of(kCallsById[id], data.functionParams),
                  reinterpret_cast<Context>(static_cast<std::uintptr_t>(*data.correlationData)), was_launched);
  }
}

// Returns what is missing, or null.
const char* bind_driver(Driver& to) noexcept {
  // It is loaded, because it called this library.
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return "libcuda.so.1";
  EntryPoints driver(library);
  driver.need(to.event_create, "cuEventCreate");
  driver.need(to.event_record, "cuEventRecord");
  driver.need(to.event_query, "cuEventQuery");
  driver.need(to.event_destroy, "cuEventDestroy_v2");
  driver.need(to.stream_is_capturing, "cuStreamIsCapturing");
  driver.need(to.stream_context, "cuStreamGetCtx");
  driver.need(to.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  driver.need(to.current, "cuCtxGetCurrent");
  driver.need(to.push, "cuCtxPushCurrent_v2");
  driver.need(to.pop, "cuCtxPopCurrent_v2");
  driver.need(to.device, "cuCtxGetDevice");
  return driver.missing();
}

struct Callbacks {
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
};

std::string bind_callbacks(Callbacks& to) {
  std::string reason;
  void* const library = open_cupti(reason);
  if (library == nullptr) return "CUPTI was not found: " + reason + "; WEIR_CUPTI_LIBRARY can name it";
  EntryPoints cupti(library);
  cupti.need(to.subscribe, "cuptiSubscribe");
  cupti.need(to.unsubscribe, "cuptiUnsubscribe");
  cupti.need(to.enable, "cuptiEnableCallback");
  cupti.need(to.result_string, "cuptiGetResultString");
  return cupti.missing() == nullptr ? "" : std::string("CUPTI lacks ") + cupti.missing();
}

std::string describe(const Callbacks& cupti, CUptiResult result) {
  const char* text = nullptr;
  if (cupti.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "no name";
  return "CUPTI error " + std::to_string(static_cast<int>(result)) + " (" + text + ")";
}

// One by one, so that other calls cost nothing. If this CUPTI does not know a call, its driver does not have it.
std::string enable_calls(const Callbacks& cupti, CUpti_SubscriberHandle subscriber) {
  for (const ListedCall& listed : kCalls) {
    const CUptiResult result = cupti.enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, listed.id);
    if (result != CUPTI_SUCCESS && listed.id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
      return "launches cannot be followed: " + describe(cupti, result);
  }
  cupti.enable(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
  return {};
}

// Returns why nothing is held, or empty.
std::string start() {
  if (const char* const missing = bind_driver(g_driver); missing != nullptr)
    return std::string("the CUDA driver lacks ") + missing;
  Callbacks cupti;
  if (const std::string reason = bind_callbacks(cupti); !reason.empty()) return reason;
  CUpti_SubscriberHandle subscriber = nullptr;
  if (const CUptiResult result = cupti.subscribe(&subscriber, on_call, nullptr); result != CUPTI_SUCCESS)
    return "CUPTI takes no subscriber: " + describe(cupti, result) + "; is another profiler active?";
  // After everything that may fail, so that no seat is taken in vain; before calls are followed, which need the gate.
  g_gate = join(kGateDriver);
  std::string reason = g_gate == nullptr ? "" : enable_calls(cupti, subscriber);
  if (g_gate == nullptr || !reason.empty()) cupti.unsubscribe(subscriber);
  if (g_gate != nullptr && !reason.empty()) g_gate->turn_off();
  return reason;
}

}  // namespace

void start_gate() noexcept {
  if (!is_scheduled() || g_gate != nullptr) return;
  try {
    if (const std::string reason = start(); !reason.empty()) report_unscheduled(reason.c_str());
  } catch (const std::exception&) {
    report_unscheduled("out of memory");
  }
}

}  // namespace weir::inject
