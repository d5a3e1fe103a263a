// All who follow calls of the driver: by hooks where the program has them (cuda_hooks.h), else by the one subscription
// to CUPTI's callbacks that a process can have.
#pragma once

#include <cupti.h>

#include <string>

#include "submit/inject/cupti_functions.h"

namespace weir::inject {

// Called in the thread of the call, before and after it.
using OnCall = void (*)(const CudaFunction& function, const CUpti_CallbackData& data);

enum class CallsBy : std::uint8_t {
  any,
  cupti,  // correlation numbers are those of CUPTI's records
};

// Follows the functions for which `wants` returns true. Returns why that is not possible, or empty. One thread at a
// time.
std::string follow_calls(OnCall listener, bool (*wants)(const CudaFunction&), CallsBy by = CallsBy::any);
// Calls under way may still be reported. The last one to leave ends the subscription, so that nothing costs anything.
void unfollow_calls(OnCall listener) noexcept;
// Tells those who follow by hooks, or by CUPTI.
void deliver_call(const CudaFunction& function, const CUpti_CallbackData& data, bool is_hooked);

}  // namespace weir::inject
