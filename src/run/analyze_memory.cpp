// The part of the `analyze` document about the memory of a device.
#include <algorithm>
#include <span>

#include "base/named_values.h"
#include "run/analyze.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/memory_held.h"
#include "trace/analyse/model_use.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kMaxPath = 100;  // modules in each other; a file may nest them as deep as it likes

// "Model_0/Linear_3"
Json module_path(const Timeline& whole, std::uint32_t module) {
  std::string path;
  for (std::size_t i = 0; i < kMaxPath && module < whole.modules.size(); ++i) {
    const TraceModule& part = whole.modules[module];
    const std::string name = part.name < whole.names.size() ? whole.names[part.name] : "?";
    path = path.empty() ? name : name + "/" + path;
    module = part.parent;
  }
  return path.empty() ? Json() : Json(path);
}

}  // namespace

Json memory_json(const MemoryHeld& found, const Timeline& whole, std::span<const TraceRange> steps,
                 std::int64_t origin_ns) {
  const auto name = [&](std::uint32_t number) {
    return number < whole.names.size() ? Json(whole.names[number]) : Json();
  };
  const auto peak = [&](const MemoryPeak& at) -> Json {
    const Operation none;
    const Operation& made = at.operation < whole.operations.size() ? whole.operations[at.operation] : none;
    return {{"bytes", at.bytes},
            {"at_ns", minus(at.at_ns, origin_ns)},
            {"operator", name(made.name)},
            {"shapes", name(made.shapes)},
            {"module", module_path(whole, made.module)},
            {"phase", made.phase == Phase::unknown ? Json() : Json(to_string(made.phase))},
            {"line", name(at.line)},
            {"step", at.step ? name(steps[*at.step].name) : Json()}};
  };
  Json json = WEIR_NAMED(found.allocations, found.frees, found.allocated_bytes);
  json["allocated"] = peak(found.allocated);
  json["reserved"] = peak(found.reserved);
  json["steps"] = Json();
  if (found.steps.empty()) return json;
  const std::span listed = std::span(found.steps).first(std::min(found.steps.size(), kMaxIterations));
  json["steps"] = {{"count", found.steps.size()},
                   {"grown", found.grown},
                   {"grows", found.grows},
                   {"first_bytes", found.steps.front().end_bytes},
                   {"last_bytes", found.steps.back().end_bytes},
                   {"list", json_list(listed, [&](const MemoryStep& step) {
                      return WEIR_NAMED(name(step.name), step.peak_bytes, step.end_bytes);
                    })}};
  return json;
}

}  // namespace weir
