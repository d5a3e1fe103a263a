#include "device/failure.h"

#include <fmt/format.h>

#include "base/error.h"

namespace weir {
namespace {

std::string in_words(const Command& command) {
  switch (command.kind) {
    case CommandKind::kernel:
      return fmt::format("kernel '{}'", kernel(command.kernel).name);
    case CommandKind::copy:
      return "a copy";
    case CommandKind::host:
      return fmt::format("host function '{}'", kernel(command.kernel).name);
    case CommandKind::collective:
      return fmt::format("a collective '{}'", name_of(command.collective));
  }
  return "a command";
}

}  // namespace

void throw_failure(const SessionFailure& failure) {
  if (const auto [result, id] = failure.latched; result != 0) {
    const std::string action = id == ErrorLatch::kNoCommand ? std::string(failure.submitting)
                                                            : fmt::format("submitting {} (command {}, stream {})",
                                                                          in_words(failure.step.commands()[id]), id,
                                                                          failure.placement.stream_of[id]);
    fail(fmt::format("{}: {} failed: {}", failure.device, action, failure.describe(result)), failure.hint(result));
  }
  if (failure.result != 0)
    fail(fmt::format("{}: a command of the step failed while it ran: {}", failure.device,
                     failure.describe(failure.result)),
         failure.hint(failure.result));
  if (failure.thrown != nullptr) rethrow(failure.thrown, fmt::format("{}: {} failed", failure.device, failure.thrower));
}

void rethrow(const std::exception_ptr& thrown, const std::string& what) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(fmt::format("{}: {}", what, error.what()));
  } catch (...) {
    fail(what);
  }
}

}  // namespace weir
