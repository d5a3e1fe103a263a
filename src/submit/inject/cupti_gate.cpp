// The part of libweir_cupti.so that holds launches: when a call begins, before the driver sees it.
#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>

#include "submit/inject/cupti_driver.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/cupti_subscription.h"
#include "submit/inject/join.h"

namespace weir::inject {
namespace {

LaunchGate* g_gate = nullptr;
std::atomic<std::uint32_t> g_teardowns{0};

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
  t_known = {context, teardowns, device_of(context) == 0};
  return t_known.is_scheduled;
}

Context context_of(void* stream) noexcept {
  const Context context = cuda_driver().context_of(stream);
  return context != nullptr && is_on_scheduled_device(static_cast<CUcontext>(context)) ? context : nullptr;
}

const GateDriver& gate_driver() noexcept {
  static const GateDriver kDriver = [] {
    GateDriver driver = cuda_driver();
    driver.context_of = context_of;
    return driver;
  }();
  return kDriver;
}

Stream gate_stream(const CudaFunction& function, const CUpti_CallbackData& data) noexcept {
  const CUstream stream = stream_of(function, data.functionParams);
  return {stream, stream == CU_STREAM_PER_THREAD};
}

void on_call(const CudaFunction& function, const CUpti_CallbackData& data) {
  const bool is_entry = data.callbackSite == CUPTI_API_ENTER;
  if (ends_context(function)) {
    // Before the driver has taken any lock for it: forget() waits for threads that are calling the driver.
    if (is_entry) g_teardowns.fetch_add(1, std::memory_order_relaxed);
    if (is_entry) g_gate->forget();
    return;
  }
  if (is_entry) {
    // Zero or a context, for the exit of this same call.
    *data.correlationData = 0;
    if (!g_gate->is_shared()) return;
    *data.correlationData = reinterpret_cast<std::uintptr_t>(g_gate->before(gate_stream(function, data)));
  } else if (*data.correlationData != 0) {
    const bool was_launched = *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS;
    g_gate->after(gate_stream(function, data),
                  reinterpret_cast<Context>(static_cast<std::uintptr_t>(*data.correlationData)), was_launched);
  }
}

// Host functions and operations on memory were never held: they take no part of the device.
bool is_held(const CudaFunction& function) noexcept {
  return ends_context(function) ||
         (is_launch(function) && function.kind != record::Kind::host_function &&
          function.kind != record::Kind::memory_operation && function.stream != CudaFunction::Stream::implicit);
}

// Returns why nothing is held, or empty.
std::string start() {
  if (const char* const missing = bind_cuda_driver(); missing != nullptr)
    return std::string("the CUDA driver lacks ") + missing;
  // Whether CUPTI serves us is known first, so that no seat is taken in vain; calls are followed when there is a gate.
  if (std::string reason = follow_calls(on_call, [](const CudaFunction&) { return false; }); !reason.empty())
    return reason;
  unfollow_calls(on_call);
  g_gate = join(gate_driver());
  if (g_gate == nullptr) return {};
  std::string reason = follow_calls(on_call, is_held);
  if (!reason.empty()) g_gate->turn_off();
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
