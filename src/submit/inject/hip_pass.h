// How a function that this library exports passes a call of the program on to HIP, held by the scheduler's gate and
// recorded where that is wanted. Each has the name and the arguments of HIP's own, and is found before it by the
// loader. Knows no function in particular.
#pragma once

#include <type_traits>

#include "submit/inject/hip_calls.h"

namespace weir::inject {

// Who wants to know of calls.
struct HipUsers {
  LaunchGate* gate = nullptr;  // null: the program is not scheduled
  bool is_recorded = false;
};
// Null: nobody. A program takes a seat, and begins to be recorded, at its first call; shells and other programs without
// HIP do neither.
const HipUsers* hip_users() noexcept;
// Nobody will ever want to know: calls cost a few nanoseconds then.
extern constinit std::atomic<bool> g_is_hip_unwatched;

template <bool is_held, class... Parameters>
hipError_t pass(HipFunction& function, Real<hipError_t(Parameters...)>& real, const HipCall& call,
                std::type_identity_t<Parameters>... parameters) {
  const HipUsers* const users = hip_users();
  if (users == nullptr || InsideHip::is_here()) return real.call(parameters...);
  HipBegun begun;
  if (users->is_recorded) begun = begin_call(function, call);
  Context context = nullptr;
  if (is_held && users->gate != nullptr) context = users->gate->before(call.stream);
  if (function.role == HipFunction::Role::context_ends && users->gate != nullptr) users->gate->forget();
  hipError_t result{};
  {
    const InsideHip inside;
    result = real.call(parameters...);
  }
  if (context != nullptr) users->gate->after(call.stream, context, result == hipSuccess);
  if (users->is_recorded) end_call(function, call, begun, result);
  return result;
}

inline Stream plain(hipStream_t stream) noexcept { return {stream, stream == hipStreamPerThread}; }
// The meaning of null in a program with a default stream per thread.
inline Stream per_thread(hipStream_t stream) noexcept { return plain(stream == nullptr ? hipStreamPerThread : stream); }

template <class Object>
std::uint64_t bits(Object* object) noexcept {
  return reinterpret_cast<std::uint64_t>(object);
}

// What calls are about. `object`: as in record::Entry.
inline HipCall on(Stream stream, std::uint64_t object = 0) noexcept {
  return {.stream = stream, .has_stream = true, .object = object};
}
inline HipCall launch_of(hipFunction_t kernel, Stream stream, hipEvent_t stop = nullptr) noexcept {
  return {.stream = stream, .has_stream = true, .kernel = kernel, .stop_event = stop};
}
inline HipCall launch_at(const void* kernel, Stream stream, hipEvent_t stop = nullptr) noexcept {
  return {.stream = stream, .has_stream = true, .is_host_function = true, .kernel = kernel, .stop_event = stop};
}
// The host does not wait for a copy within a device, and may or may not for one whose direction HIP has to find out.
inline HipCall copied(Stream stream, std::uint64_t bytes, hipMemcpyKind kind) noexcept {
  return {.stream = stream,
          .has_stream = true,
          .has_ended = kind != hipMemcpyDeviceToDevice && kind != hipMemcpyDefault,
          .is_copy_in_order = kind == hipMemcpyDeviceToDevice,
          .object = bytes};
}
inline HipCall about(hipEvent_t event) noexcept { return {.object = bits(event)}; }
inline HipCall making(const hipEvent_t* event) noexcept { return {.made = event}; }

}  // namespace weir::inject

// A function of HIP. `is_held`: whether the gate holds it; `about_`: what it is about; then its parameters in
// parentheses and their names. Its symbol differs from its name here, because versions differ in what they declare
// under that name.
#define WEIR_HIP_AS(symbol, recorded_name, kind_, role_, is_held, about_, parameters, ...)                       \
  extern "C" __attribute__((visibility("default"))) hipError_t weir_##symbol parameters __asm__(#symbol);        \
  hipError_t weir_##symbol parameters {                                                                          \
    static constinit HipFunction weir_function{.name = recorded_name, .kind = Kind::kind_, .role = Role::role_}; \
    static constinit Real<hipError_t parameters> weir_real{#symbol};                                             \
    if (g_is_hip_unwatched.load(std::memory_order_relaxed)) return weir_real.call(__VA_ARGS__);                  \
    return pass<is_held>(weir_function, weir_real, about_ __VA_OPT__(, ) __VA_ARGS__);                           \
  }
// One whose variant for programs with a default stream per thread is called NAME_spt. In `about_`, `at` is the stream.
#define WEIR_HIP_AT(symbol, name, kind_, role_, is_held, at_, about_, parameters, ...) \
  WEIR_HIP_AS(symbol, name, kind_, role_, is_held, ([&] {                              \
                const Stream at = at_;                                                 \
                return about_;                                                         \
              }()),                                                                    \
              parameters, __VA_ARGS__)
#define WEIR_HIP(name, kind_, about_, parameters, ...) \
  WEIR_HIP_AS(name, #name, kind_, plain, false, about_, parameters __VA_OPT__(, ) __VA_ARGS__)
#define WEIR_HIP_ROLE(name, role_, about_, parameters, ...) \
  WEIR_HIP_AS(name, #name, other, role_, false, about_, parameters __VA_OPT__(, ) __VA_ARGS__)
