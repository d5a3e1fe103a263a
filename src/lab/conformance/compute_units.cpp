// Streams confined to a part of the device's compute units compute the same, and have at least the requested number;
// one stream may have the rest; requests for more than exist are rejected.
#include <fmt/format.h>

#include "base/error.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

constexpr Needs kNeeds{.results = true, .compute_units = true, .second_device = true};

// `rest_stream`: the stream with the rest, or -1.
CaseOutcome confined(Subject& subject, int units, int streams, int rest_stream) {
  DeviceOptions options;
  options.compute_units = units;
  options.rest_stream = rest_stream;
  const auto device = subject.open_again(options);
  Subject part{*device, device->info(), subject.cpu, {}};
  const Step step = random_step(31, streams, {.has_host = static_cast<bool>(part.info.host_functions)});
  const Placement placement = natural(step);
  const int each = part.info.stream_compute_units;
  if (each < units) return failed(fmt::format("{} compute units become {}", units, each));
  {
    const auto session = device->prepare(step, placement, {});
    const int all = subject.info.multiprocessors.value.value_or(0);
    for (int stream = 0; stream < streams; ++stream) {
      const int given = session->compute_units(static_cast<StreamId>(stream));
      const int due = stream == rest_stream && all > 0 ? all - (streams - 1) * each : each;
      if (given != due && (stream != rest_stream || all > 0))
        return failed(fmt::format("stream {} has {} compute units, not {}", stream, given, due));
    }
  }
  return same_buffers(part, step, placement, {"inline", true, 3});
}

CaseOutcome too_many(Subject& subject) {
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
                     [units](Subject& subject) { return confined(subject, units, 4, -1); }});
  cases.push_back({"compute_units", "one stream has the rest", kNeeds,
                   [](Subject& subject) { return confined(subject, 1, 2, 0); }});
  cases.push_back({"compute_units", "more than there are", kNeeds, too_many});
  return cases;
}

}  // namespace weir::conformance
