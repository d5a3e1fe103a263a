// The functions of the program's HIP library, which lie behind those of the same names that this library exports. Knows
// no function in particular.
#pragma once

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_runtime_api.h>

#include <atomic>
#include <type_traits>

namespace weir::inject {

// Null where the library lacks it.
void* find_in_hip(const char* name) noexcept;

template <class Function>
class Real;
// A function of HIP, found when it is first called.
template <class Result, class... Parameters>
class Real<Result(Parameters...)> {
 public:
  // Some have C++ names in some versions: then the other name is tried.
  constexpr explicit Real(const char* name, const char* other = nullptr) : name_(name), other_(other) {}
  using Function = Result (*)(Parameters...);

  Function get() noexcept {
    // Relaxed: every thread finds the same function.
    Function known = entry_.load(std::memory_order_relaxed);
    if (known != nullptr || is_missing_.load(std::memory_order_relaxed)) return known;
    void* found = find_in_hip(name_);
    if (found == nullptr && other_ != nullptr) found = find_in_hip(other_);
    known = reinterpret_cast<Function>(found);
    entry_.store(known, std::memory_order_relaxed);
    is_missing_.store(known == nullptr, std::memory_order_relaxed);
    return known;
  }
  // Not noexcept: a thread may be cancelled while HIP waits.
  template <class... Arguments>
  Result call(Arguments... arguments) {
    const Function real = get();
    if (real != nullptr) return real(arguments...);
    if constexpr (std::is_same_v<Result, hipError_t>)
      return hipErrorSharedObjectSymbolNotFound;
    else
      return Result{};
  }

 private:
  const char* name_;
  const char* other_;
  std::atomic<Function> entry_{nullptr};
  std::atomic<bool> is_missing_{false};
};

// HIP may call its own exported functions, which arrive here again: the program's call counts, and ours count as none.
class InsideHip {
 public:
  InsideHip() noexcept { ++t_depth; }
  ~InsideHip() { --t_depth; }
  InsideHip(const InsideHip&) = delete;
  InsideHip& operator=(const InsideHip&) = delete;
  static bool is_here() noexcept { return t_depth > 0; }

 private:
  static constinit thread_local int t_depth;
};

}  // namespace weir::inject
