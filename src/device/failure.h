// What went wrong in a session, as the Error that finish() throws. Knows no vendor.
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
  std::string_view submitting;  // what was done where no command is known: "submitting the step"
  // The vendor's words for a result, and advice after it.
  std::function<std::string(int result)> describe, hint;
  ErrorLatch::Latched latched = {};  // while commands were submitted
  int result = 0;                    // while they ran
  std::exception_ptr thrown = {};    // by what the host does for the device
  std::string_view thrower = "a host function";
};

// Throws the first failure that there is, in this order; returns where there is none.
void throw_failure(const SessionFailure& failure);

// Throws what a body threw: an Error as it is, anything else after `what`.
[[noreturn]] void rethrow(const std::exception_ptr& thrown, const std::string& what);

}  // namespace weir
