// Streams confined to a part of the device's compute units compute the same; more than there are is rejected.
#include <fmt/format.h>

#include "base/error.h"
#include "conformance/checks.h"
#include "conformance/list.h"

namespace weir::conformance {
namespace {

constexpr Needs kNeeds{.results = true, .compute_units = true, .second_device = true};

Outcome confined(Subject& subject, int units) {
  DeviceOptions options;
  options.compute_units = units;
  const auto device = subject.open_again(options);
  Subject part{*device, device->info(), subject.cpu, {}};
  const Step step = random_step(31, 4, {.has_host = static_cast<bool>(part.info.host_functions)});
  return same_buffers(part, step, natural(step), {"inline", true, 3});
}

Outcome too_many(Subject& subject) {
  const std::optional<int> units = subject.info.multiprocessors.value;
  if (!units) return skipped("the number of compute units is not known: " + subject.info.multiprocessors.reason);
  DeviceOptions options;
  options.compute_units = *units + 1;
  try {
    subject.open_again(options);
  } catch (const Error& error) {
    return error.fault == Fault::input ? passed()
                                       : failed(fmt::format("it fails instead of rejecting: {}", error.what()));
  }
  return failed(fmt::format("{} compute units of {} are accepted", *units + 1, *units));
}

}  // namespace

Cases compute_units() {
  Cases cases;
  for (const int units : {1, 2})
    cases.push_back({"compute_units", fmt::format("streams on {}", units), kNeeds,
                     [units](Subject& subject) { return confined(subject, units); }});
  cases.push_back({"compute_units", "more than there are", kNeeds, too_many});
  return cases;
}

}  // namespace weir::conformance
