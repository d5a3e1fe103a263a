// The one subscription to CUPTI's callbacks that a process can have, shared by all who follow calls of the driver.
#pragma once

#include <cupti.h>

#include <string>

#include "submit/inject/cupti_functions.h"

namespace weir::inject {

// Called in the thread of the call, before and after it.
using OnCall = void (*)(const CudaFunction& function, const CUpti_CallbackData& data);

// Follows the functions for which `wants` returns true. Returns why that is not possible, or empty. One thread at a
// time.
std::string follow_calls(OnCall listener, bool (*wants)(const CudaFunction&));
// Calls under way may still be reported. The last one to leave ends the subscription, so that nothing costs anything.
void unfollow_calls(OnCall listener) noexcept;

}  // namespace weir::inject
