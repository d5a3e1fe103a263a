// How fast data moves: from the host to the device and back, and inside of the device's memory.
#include "lab/fleet/meter.h"

namespace weir::fleet {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr int kCopies = 4;  // per iteration, so that launching and waiting cost nearly nothing

// A copy by the device's engines, from or to host memory that they can reach.
Step copies(bool to_device, std::uint64_t bytes) {
  StepBuilder builder(1);
  const std::uint64_t count = bytes / sizeof(float);
  const BufferId from =
      to_device ? builder.host(ElementType::f32, count, Init::uniform) : builder.uniform(ElementType::f32, count);
  const BufferId to =
      to_device ? builder.output(ElementType::f32, count) : builder.host(ElementType::f32, count, Init::poison);
  for (int i = 0; i < kCopies; ++i) builder.copy({}, {from}, {to});
  return std::move(builder).seal(1);
}

// By the device's compute units: one pass reads all and writes all.
Step memory_passes(std::uint64_t bytes, int passes) {
  StepBuilder builder(1);
  const std::uint64_t count = bytes / sizeof(float);
  const BufferId from = builder.uniform(ElementType::f32, count), to = builder.output(ElementType::f32, count);
  for (int i = 0; i < passes; ++i)
    builder.launch("copy", {}, {.dims = {static_cast<std::int64_t>(count)}, .scalars = {}}, {{from}, {to}});
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
      StepPlan plan{.figure = figure, .to = {}, .step = std::move(step)};
      plan.amount = amount;
      plan.is_rate = true;
      plan.extra = context.extra(figure);
      auto meter = std::make_unique<StepMeter>(context.device, std::move(plan));
      meter->is_load = is_load;
      return meter;
    });
  };
  const std::uint64_t copied = context.is_large ? 128 * kMiB : 4 * kMiB;
  add("copy_to_device", copies(true, copied), static_cast<double>(kCopies * copied), false);
  add("copy_to_host", copies(false, copied), static_cast<double>(kCopies * copied), false);
  // Beyond the caches of GPUs; on a CPU, whose caches may be as large, of what fits a shared machine.
  const std::uint64_t array = context.is_large ? 512 * kMiB : 16 * kMiB;
  const int passes = context.is_large ? 8 : 2;
  add("memory", memory_passes(array, passes), 2.0 * static_cast<double>(array) * passes, true);
}

}  // namespace weir::fleet
