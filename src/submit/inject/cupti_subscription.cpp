#include "submit/inject/cupti_subscription.h"

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>

#include "submit/inject/cuda_hooks.h"
#include "submit/inject/cupti_library.h"

namespace weir::inject {
namespace {

struct Listener {
  std::atomic<OnCall> call{nullptr};
  std::bitset<kMaxCudaFunctions> wanted;  // written before `call`, as is the next
  bool is_hooked = false;
};
std::array<Listener, 3> g_listeners;  // the gate, the recorder and the race's

// CUpti_SubscriberParams as CUDA 13.2 has it; the headers that this was built with may be older. In 13.0 it ends before
// the last field, and each version takes the size that it knows.
struct SubscriberParameters {
  std::size_t bytes = 0;
  const char* name = nullptr;
  char* other_name = nullptr;
  std::size_t other_name_bytes = 0;
  std::uint8_t allows_multiple = 0;
};
constexpr std::size_t kSharedBytes = offsetof(SubscriberParameters, allows_multiple) + 1;
constexpr std::size_t kAloneBytes = offsetof(SubscriberParameters, allows_multiple);

struct Callbacks {
  decltype(&cuptiSubscribe) subscribe = nullptr;
  // Since CUDA 13.0: names the other subscriber.
  CUptiResult (*subscribe_v2)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, SubscriberParameters*) = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
};
Callbacks g_cupti;

CUpti_SubscriberHandle g_subscriber = nullptr;

// cudaDeviceReset() takes contexts away without a call of the driver that would say so.
constexpr CudaFunction kReset = [] {
  CudaFunction reset;
  reset.is_followed = true;
  reset.role = CudaFunction::Role::context_ends;
  reset.name = "cudaDeviceReset";
  return reset;
}();

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* raw) {
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  const bool is_driver = domain == CUPTI_CB_DOMAIN_DRIVER_API && id < kMaxCudaFunctions;
  deliver_call(is_driver ? cuda_functions()[id] : kReset, data, false);
}

std::string describe(CUptiResult result) {
  const char* text = nullptr;
  if (g_cupti.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "no name";
  return "CUPTI error " + std::to_string(static_cast<int>(result)) + " (" + text + ")";
}

std::string bind() {
  if (g_cupti.subscribe != nullptr) return {};
  std::string reason;
  void* const library = open_cupti(reason);
  if (library == nullptr) return "CUPTI was not found: " + reason + "; WEIR_CUPTI_LIBRARY can name it";
  Callbacks found;
  EntryPoints cupti(library);
  cupti.need(found.subscribe, "cuptiSubscribe");
  cupti.need(found.unsubscribe, "cuptiUnsubscribe");
  cupti.need(found.enable, "cuptiEnableCallback");
  cupti.need(found.result_string, "cuptiGetResultString");
  cupti.want(found.subscribe_v2, "cuptiSubscribe_v2");
  if (cupti.missing() != nullptr) return std::string("CUPTI lacks ") + cupti.missing();
  g_cupti = found;
  return {};
}

std::string subscribe() {
  if (g_subscriber != nullptr) return {};
  if (std::string reason = bind(); !reason.empty()) return reason;
  char other[256] = {};
  CUptiResult result = CUPTI_SUCCESS;
  if (g_cupti.subscribe_v2 != nullptr) {
    // Beside another profiler where CUPTI can do that; otherwise it says who that is.
    for (const std::size_t bytes : {kSharedBytes, kAloneBytes}) {
      SubscriberParameters parameters{bytes, "weir", other, sizeof(other), 1};
      result = g_cupti.subscribe_v2(&g_subscriber, on_callback, nullptr, &parameters);
      if (result == CUPTI_SUCCESS) break;
    }
  } else {
    result = g_cupti.subscribe(&g_subscriber, on_callback, nullptr);
  }
  if (result == CUPTI_SUCCESS) return {};
  g_subscriber = nullptr;
  other[sizeof(other) - 1] = '\0';
  return "CUPTI takes no subscriber: " + describe(result) +
         (other[0] == '\0' ? "; is another profiler active?" : std::string("; ") + other + " is one already");
}

// What those want who follow by hooks.
void update_hooks() {
  std::bitset<kMaxCudaFunctions> all;
  for (const Listener& one : g_listeners)
    if (one.call.load() != nullptr && one.is_hooked) all |= one.wanted;
  want_hooks(all);
}

void enable(bool is_on, const std::bitset<kMaxCudaFunctions>& functions) {
  const std::uint32_t word = is_on ? 1 : 0;
  // One by one, so that other calls cost nothing. If this CUPTI does not know a call, its driver does not have it.
  for (const CudaFunction& function : cuda_functions())
    if (functions[function.id] && function.id != 0)
      g_cupti.enable(word, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, function.id);
  if (functions[kReset.id])
    g_cupti.enable(word, g_subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
}

}  // namespace

void deliver_call(const CudaFunction& function, const CUpti_CallbackData& data, bool is_hooked) {
  for (Listener& listener : g_listeners)
    if (const OnCall call = listener.call.load(std::memory_order_acquire);  // pairs with the release in follow_calls()
        call != nullptr && listener.is_hooked == is_hooked && listener.wanted[function.id])
      call(function, data);
}

std::string follow_calls(OnCall listener, bool (*wants)(const CudaFunction&), CallsBy by) {
  const bool is_hooked = by == CallsBy::any && has_hooks();
  if (!is_hooked)
    if (std::string reason = subscribe(); !reason.empty()) return reason;
  Listener* place = nullptr;
  for (Listener& one : g_listeners)
    if (one.call.load() == nullptr && place == nullptr) place = &one;
  if (place == nullptr) return "too many follow the calls of this program";
  place->wanted.reset();
  for (const CudaFunction& function : cuda_functions())
    if (function.is_followed && wants(function)) place->wanted.set(function.id);
  if (wants(kReset)) place->wanted.set(kReset.id);
  place->is_hooked = is_hooked;
  place->call.store(listener, std::memory_order_release);
  if (is_hooked) {
    update_hooks();
    return {};
  }
  const CUptiResult result =
      g_cupti.enable(1, g_subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  if (result != CUPTI_SUCCESS) {
    unfollow_calls(listener);
    return "launches cannot be followed: " + describe(result);
  }
  enable(true, place->wanted);
  return {};
}

void unfollow_calls(OnCall listener) noexcept {
  std::bitset<kMaxCudaFunctions> others, mine;
  bool is_last = true;
  for (Listener& one : g_listeners) {
    if (one.call.load() == listener) {
      if (!one.is_hooked) mine = one.wanted;
      one.call.store(nullptr, std::memory_order_release);
    } else if (one.call.load() != nullptr && !one.is_hooked) {
      others |= one.wanted;
      is_last = false;
    }
  }
  if (has_hooks()) update_hooks();
  if (g_subscriber == nullptr) return;
  enable(false, mine & ~others);
  if (!is_last) return;
  g_cupti.unsubscribe(g_subscriber);
  g_subscriber = nullptr;
}

}  // namespace weir::inject
