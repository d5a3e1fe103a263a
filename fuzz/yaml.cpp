// Workload files of any origin: whatever the text, it either gives a step or throws our own error.
#include "step/workload/yaml.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "step/workload/cases.h"

namespace weir {
// The program's own have nothing to do with what a file holds.
std::span<const EmbeddedCase> embedded_cases() { return {}; }
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  weir::YamlLimits limits;
  limits.document = {.file_bytes = 8192, .nodes = 2'000, .depth = 30};
  limits.commands = 2'000;
  limits.iterations = 5'000;
  limits.overlaps = 100'000;
  try {
    const weir::Workload workload = weir::parse_workload(text, "fuzz", limits);
    const weir::Params params(workload.params, weir::Scale::tiny, {});
    const weir::Step step = workload.build(params, workload.streams.min);
    if (step.commands().empty() || !(step.work() > 0)) __builtin_trap();
  } catch (const weir::Error& error) {
    // The one way in which a file may be refused, and always as the user's mistake.
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
