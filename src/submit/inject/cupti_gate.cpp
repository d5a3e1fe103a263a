// The part of libweir_cupti.so that holds launches: when a call begins, before the driver sees it.
#include <cupti.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>

#include "submit/inject/cuda_part.h"
#include "submit/inject/cupti_driver.h"
#include "submit/inject/cupti_library.h"
#include "submit/inject/cupti_subscription.h"
#include "submit/inject/join.h"

namespace weir::inject {
namespace {

using scheduler::Confinable;

LaunchGate* g_gate = nullptr;
std::atomic<std::uint32_t> g_teardowns{0};
std::atomic<Confinable> g_confinable{Confinable::unknown};

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

// The context of a launch that is held or counted. Where the daemon wants it, the launch then goes to a part of the
// device, and waits for nobody.
Context enter(const CudaFunction& function, const CUpti_CallbackData& data) noexcept {
  scheduler::Gate& gate = g_gate->gate();
  const Stream stream = gate_stream(function, data);
  if (gate.part_percent() != 0 && g_confinable.load(std::memory_order_relaxed) == Confinable::unknown) {
    if (const Context context = context_of(stream.handle); context != nullptr) {
      const Confinable found = prepare_part(context, gate.part_percent());
      g_confinable.store(found, std::memory_order_relaxed);
      gate.set_confinable(found);
    }
  }
  const bool is_confinable = g_confinable.load(std::memory_order_relaxed) == Confinable::yes;
  const bool fits = is_confinable && fits_part(function, data.functionParams, stream, context_of(stream.handle));
  using Fits = scheduler::Gate::Fits;
  const Context context = g_gate->before(stream, fits ? Fits::part : Fits::whole);
  const bool is_graph = function.kind == record::Kind::graph_launch;
  if (context == nullptr || (!is_confinable && !is_graph)) return context;
  const std::uint32_t percent = fits ? gate.confines_to() : 0;
  if (enter_part(function, data.functionParams, stream, context, percent)) gate.count_confined();
  return context;
}

// Where nobody else is about. A graph of which nobody knows where it runs could not become its twin later.
void note_graph(const CudaFunction& function, const CUpti_CallbackData& data) noexcept {
  if (g_confinable.load(std::memory_order_relaxed) > Confinable::yes) return;
  const Stream stream = gate_stream(function, data);
  if (const Context context = context_of(stream.handle); context != nullptr)
    enter_part(function, data.functionParams, stream, context, 0);
}

bool is_about_primary(const CudaFunction& function) noexcept {
  switch (function.id) {
    case CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy:
    case CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2:
#if CUDA_VERSION >= 12040
    case CUPTI_DRIVER_TRACE_CBID_cuGreenCtxDestroy:
#endif
      return false;
    default:
      return true;
  }
}

void on_call(const CudaFunction& function, const CUpti_CallbackData& data) {
  const bool is_entry = data.callbackSite == CUPTI_API_ENTER;
  if (ends_context(function)) {
    // Before the driver has taken any lock for it: forget() waits for threads that are calling the driver.
    if (is_entry) g_teardowns.fetch_add(1, std::memory_order_relaxed);
    if (is_entry && is_about_primary(function)) forget_parts();
    if (is_entry) g_gate->forget();
    return;
  }
  if (is_about_graphs(function)) {
    const bool is_made = function.role == CudaFunction::Role::graph_made;
    const bool has_failed = !is_entry && *static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS;
    // Where the daemon confines nobody, nobody needs a second one.
    if (is_entry != is_made && !has_failed && (!is_made || g_gate->gate().part_percent() != 0))
      follow_graph(function, data.functionParams);
    return;
  }
  if (is_entry) {
    // Zero or a context, for the exit of this same call.
    *data.correlationData = 0;
    if (g_gate->is_shared())
      *data.correlationData = reinterpret_cast<std::uintptr_t>(enter(function, data));
    else if (function.kind == record::Kind::graph_launch)
      note_graph(function, data);
  } else if (*data.correlationData != 0) {
    const bool was_launched = *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS;
    const Stream stream = gate_stream(function, data);
    const auto context = reinterpret_cast<Context>(static_cast<std::uintptr_t>(*data.correlationData));
    leave_part(stream, context);
    g_gate->after(stream, context, was_launched);
  }
}

// Host functions and operations on memory were never held: they take no part of the device.
bool is_held(const CudaFunction& function) noexcept {
  return ends_context(function) || is_about_graphs(function) ||
         (record::is_command(function.kind) && function.kind != record::Kind::host_function &&
          function.kind != record::Kind::memory_operation);
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
  g_confinable.store(bind_cuda_part());
  g_gate->gate().set_confinable(g_confinable.load());
  ::pthread_atfork(nullptr, nullptr, abandon_parts);
  std::atexit(abandon_parts);
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
