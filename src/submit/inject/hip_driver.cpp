#include "submit/inject/hip_driver.h"

namespace weir::inject {
namespace {

Real<hipError_t(hipEvent_t*, unsigned)> g_event_create{"hipEventCreateWithFlags"};
Real<hipError_t(hipEvent_t, hipStream_t)> g_event_record{"hipEventRecord"};
Real<hipError_t(hipEvent_t)> g_event_query{"hipEventQuery"};
Real<hipError_t(hipEvent_t)> g_event_destroy{"hipEventDestroy"};
Real<hipError_t(hipStream_t, hipStreamCaptureStatus*)> g_is_capturing{"hipStreamIsCapturing"};
Real<hipError_t(hipStreamCaptureMode*)> g_exchange_mode{"hipThreadExchangeStreamCaptureMode"};
Real<hipError_t(int*)> g_get_device{"hipGetDevice"};
Real<hipError_t(int)> g_set_device{"hipSetDevice"};
Real<hipError_t(hipStream_t, int*)> g_stream_device{"hipStreamGetDevice"};  // since ROCm 5.6
Real<int(hipStream_t)> g_stream_device_before{"hipGetStreamDeviceId"};
Real<hipError_t()> g_last_error{"hipGetLastError"};
Real<hipError_t()> g_peek_error{"hipPeekAtLastError"};
Real<const char*(hipFunction_t)> g_name_of_function{"hipKernelNameRef"};
Real<const char*(const void*, hipStream_t)> g_name_of_host_function{"hipKernelNameRefByPtr"};

// An error of a call of ours must not become the program's last error. One of the program's cannot be restored: before
// ROCm 7 every call replaces it, so none of ours may follow a call of the program that failed.
class KeepsLastError {
 public:
  KeepsLastError() noexcept : was_clean_(g_peek_error.get() != nullptr && g_peek_error.call() == hipSuccess) {}
  ~KeepsLastError() {
    if (was_clean_ && g_last_error.get() != nullptr) (void)g_last_error.call();
  }
  KeepsLastError(const KeepsLastError&) = delete;
  KeepsLastError& operator=(const KeepsLastError&) = delete;

 private:
  bool was_clean_;
};

hipStream_t handle_of(void* stream) noexcept {
  return stream == kHipDefaultStream ? nullptr : static_cast<hipStream_t>(stream);
}
int device_of(Context context) noexcept { return static_cast<int>(reinterpret_cast<std::intptr_t>(context) - 1); }

bool begin(Context context, GateDriver::Visit* visit) noexcept {
  const InsideHip inside;
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
  const InsideHip inside;
  if (visit.has_context) (void)g_set_device.call(device_of(visit.previous));
  auto mode = static_cast<hipStreamCaptureMode>(visit.mode);
  if (visit.has_mode) (void)g_exchange_mode.call(&mode);
  if (visit.was_clean && g_last_error.get() != nullptr) (void)g_last_error.call();
}

Context context_of(void* stream) noexcept {
  const int device = is_captured(stream) ? -1 : device_of_stream(stream);
  return device >= 0 ? context_on(device) : nullptr;
}
Context context_if_first(void* stream) noexcept {
  const Context context = context_of(stream);
  return context == context_on(0) ? context : nullptr;
}

Event make() noexcept {
  const InsideHip inside;
  hipEvent_t event = nullptr;
  return g_event_create.call(&event, unsigned{hipEventDisableTiming}) == hipSuccess ? event : nullptr;
}
bool record(Event event, void* stream) noexcept {
  const InsideHip inside;
  return g_event_record.call(static_cast<hipEvent_t>(event), handle_of(stream)) == hipSuccess;
}
GateDriver::State query(Event event) noexcept {
  const InsideHip inside;
  const hipError_t result = g_event_query.call(static_cast<hipEvent_t>(event));
  if (result == hipErrorNotReady) return GateDriver::State::running;
  return result == hipSuccess ? GateDriver::State::ended : GateDriver::State::lost;
}
void drop(Event event) noexcept {
  const InsideHip inside;
  (void)g_event_destroy.call(static_cast<hipEvent_t>(event));
}

constexpr GateDriver kFirstDevice{context_if_first, begin, end, make, record, query, drop};
constexpr GateDriver kAllDevices{context_of, begin, end, make, record, query, drop};

}  // namespace

const char* missing_in_hip() noexcept {
  if (g_event_create.get() == nullptr) return "hipEventCreateWithFlags";
  if (g_event_record.get() == nullptr) return "hipEventRecord";
  if (g_event_query.get() == nullptr) return "hipEventQuery";
  if (g_is_capturing.get() == nullptr) return "hipStreamIsCapturing";
  return nullptr;
}

const GateDriver& first_device_driver() noexcept { return kFirstDevice; }
const GateDriver& all_devices_driver() noexcept { return kAllDevices; }

int current_device() noexcept {
  const InsideHip inside;
  int device = -1;
  return g_get_device.call(&device) == hipSuccess ? device : -1;
}

int device_of_stream(void* stream) noexcept {
  const hipStream_t handle = handle_of(stream);
  if (handle == nullptr || handle == hipStreamPerThread) return current_device();
  const InsideHip inside;
  const KeepsLastError keeps;
  int device = -1;
  if (g_stream_device.get() != nullptr) return g_stream_device.call(handle, &device) == hipSuccess ? device : -1;
  if (g_stream_device_before.get() != nullptr) return g_stream_device_before.call(handle);
  return current_device();
}

bool is_captured(void* stream) noexcept {
  const InsideHip inside;
  const KeepsLastError keeps;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  // An error means that some other stream is captured, which this one may not disturb: the call will fail by itself.
  return g_is_capturing.call(handle_of(stream), &status) != hipSuccess || status != hipStreamCaptureStatusNone;
}

const char* name_of_kernel(const void* kernel, bool is_host_function, void* stream) noexcept {
  const InsideHip inside;
  const KeepsLastError keeps;
  if (kernel == nullptr) return nullptr;
  if (is_host_function) return g_name_of_host_function.call(kernel, handle_of(stream));
  return g_name_of_function.call(static_cast<hipFunction_t>(const_cast<void*>(kernel)));
}

}  // namespace weir::inject
