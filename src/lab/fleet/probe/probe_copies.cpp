// How fast data moves: from the host to the device and back, and inside of the device's memory.
#include "lab/fleet/probe/meter.h"

namespace weir::fleet {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kParts = 4;  // per iteration, so that launching and waiting cost nearly nothing

// Each part is written once in an iteration: what is overwritten could not be checked.
// A copy by the device's engines, from or to host memory that they can reach.
Step copies(bool to_device, std::uint64_t part_bytes) {
  StepBuilder builder(1);
  const std::uint64_t part = part_bytes / sizeof(float), count = kParts * part;
  const BufferId from =
      to_device ? builder.host(ElementType::f32, count, Init::uniform) : builder.uniform(ElementType::f32, count);
  const BufferId to =
      to_device ? builder.output(ElementType::f32, count) : builder.host(ElementType::f32, count, Init::poison);
  for (std::uint64_t i = 0; i < kParts; ++i) builder.copy({}, {from, i * part, part}, {to, i * part, part});
  return std::move(builder).seal(1);
}

// By the device's compute units: each pass reads all of one array and writes all of another.
Step memory_passes(std::uint64_t bytes) {
  StepBuilder builder(1);
  const std::uint64_t count = bytes / sizeof(float);
  const BufferId from = builder.uniform(ElementType::f32, count);
  for (std::uint64_t i = 0; i < kParts; ++i) {
    const BufferId to = builder.output(ElementType::f32, count);
    builder.launch("copy", {}, {.dims = {static_cast<std::int64_t>(count)}, .scalars = {}}, {{from}, {to}});
  }
  return std::move(builder).seal(1);
}

}  // namespace

void add_copy_meters(const MeterContext& context, Meters& meters) {
  if (!context.info.runs()) {
    for (const char* const figure : {"copy_to_device", "copy_to_host", "memory"})
      meters.lacks(figure, "commands take no time on this device");
    return;
  }
  const auto add = [&](const std::string& figure, Step step, double amount, bool is_load) {
    meters.add(figure, [&] {
      MeterPlan plan{.figure = figure, .to = {}, .step = std::move(step)};
      plan.amount = amount;
      plan.is_rate = true;
      plan.extra = context.extra(figure);
      auto meter = std::make_unique<StepMeter>(context.device, std::move(plan));
      meter->is_load = is_load;
      return meter;
    });
  };
  const std::uint64_t part = context.is_large ? 64 * kMiB : kMiB;
  add("copy_to_device", copies(true, part), static_cast<double>(kParts * part), false);
  add("copy_to_host", copies(false, part), static_cast<double>(kParts * part), false);
  // Beyond the caches of GPUs; on a CPU, whose caches may be as large, of what fits a shared machine.
  const std::uint64_t array = context.is_large ? 256 * kMiB : 8 * kMiB;
  add("memory", memory_passes(array), static_cast<double>(2 * kParts * array), true);
}

}  // namespace weir::fleet
