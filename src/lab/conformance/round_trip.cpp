#include "lab/conformance/round_trip.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/chain.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {

Step round_trip_step(bool has_cuts) {
  constexpr std::uint64_t kCount = 50'000;
  StepBuilder builder(9);
  const KernelShape add{.dims = {static_cast<std::int64_t>(kCount), chain_ops({ChainOp::add})}, .scalars = {0.5f}};
  for (StreamId s = 0; s < 3; ++s) {
    const BufferId data = builder.uniform(ElementType::f32, kCount);
    const BufferId host = builder.host(ElementType::f32, kCount, Init::constant);
    builder.launch("chain", {.stream = s}, add, {{data}, {data}});
    builder.copy({.stream = s}, {data}, {host});
    if (has_cuts) builder.cut();
    builder.launch_on_host("chain", {.stream = s}, add, {{host}, {host}});
    if (has_cuts) builder.cut();
    builder.copy({.stream = static_cast<StreamId>((s + 1) % 3)}, {host}, {data});
  }
  return std::move(builder).seal(3);
}

CaseOutcome rejected(Subject& subject, const Step& step, const SessionOptions& options, std::string_view word) {
  const Placement placement = natural(step);
  try {
    subject.device.prepare(step, placement, options);
  } catch (const Error& error) {
    if (error.fault != Fault::input) return failed(fmt::format("it fails instead of rejecting: {}", error.what()));
    if (std::string_view(error.what()).find(word) == std::string_view::npos)
      return failed(fmt::format("the message does not name '{}': {}", word, error.what()));
    if (error.hint.empty()) return failed(fmt::format("the message gives no advice: {}", error.what()));
    return passed();
  }
  return failed("it is accepted");
}

}  // namespace weir::conformance
