// Turns the failure of a session into the Error that finish() throws. Knows no vendor.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "device/error_latch.h"
#include "device/plan.h"

namespace weir {

struct SessionFailure {
  std::string_view device;
  const Step& step;
  const Placement& placement;
  std::string_view submitting;  // used in the message if no command is known: "submitting the step"
  // The vendor's text for a result code, and advice to print after it.
  std::function<std::string(int result)> describe, hint;
  ErrorLatch::Latched latched = {};  // while commands were submitted
  int result = 0;                    // while they ran
  std::exception_ptr thrown = {};    // by the host's own work for the device
  std::string_view thrower = "a host function";
};

// Throws the first failure in this order, if there is any.
void throw_failure(const SessionFailure& failure);

// Rethrows an exception of a kernel body: an Error unchanged, anything else prefixed with `what`.
[[noreturn]] void rethrow(const std::exception_ptr& thrown, const std::string& what);

}  // namespace weir
