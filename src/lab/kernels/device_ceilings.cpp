// Measures the ceilings of a device with kernels of the catalogue: copies for bandwidth, matrix products for
// arithmetic. Knows sessions and steps; never a vendor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "kernel/gemm.h"
#include "lab/kernels/roofline.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace weir::bench {
namespace {

constexpr int kWarm = 2, kMeasured = 5;
constexpr double kLongEnough = 0.02, kTooLong = 0.5;  // seconds of one iteration

struct Timed {
  double seconds = 0;  // of the fastest iteration
  Cost cost;
};

// Runs a step of one command, timed by the device's clock, or by the host's if the device has none.
Timed run_step(Device& device, const Step& step) {
  const Placement placement = place(step, "natural");
  const auto session = device.prepare(step, placement, SessionOptions{});
  const auto submitter = inline_submitter(step, *session);
  Timed timed{.cost = step.cost()};
  double wall = INFINITY;
  for (int i = 0; i < kWarm + kMeasured; ++i) {
    const std::int64_t begun = session->now_ns();
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    const double seconds = static_cast<double>(session->now_ns() - begun) / 1e9;
    if (i == kWarm - 1) session->take_spans();
    if (i >= kWarm) wall = std::min(wall, seconds);
    if (seconds > kTooLong && i >= kWarm) break;
  }
  double best = INFINITY;
  for (const IterationSpan& span : session->take_spans())
    if (span.started_ns != kNoTime && span.ended_ns > span.started_ns)
      best = std::min(best, static_cast<double>(span.ended_ns - span.started_ns) / 1e9);
  timed.seconds = std::isfinite(best) ? best : wall;
  return timed;
}

Ceiling bandwidth_ceiling(Device& device, const DeviceInfo& info) {
  // Larger than any current cache if memory allows it; OpenCL on a CPU shares the host's memory and is slow.
  const std::uint64_t memory = info.memory_bytes.value.value_or(std::uint64_t{4} << 30);
  const std::uint64_t most = std::min(std::uint64_t{1} << 30, memory / 8);
  Ceiling ceiling{std::nullopt, "not enough memory for arrays beyond the caches"};
  for (std::uint64_t bytes = std::uint64_t{64} << 20; bytes <= most; bytes *= 4) {
    StepBuilder builder(1);
    const std::uint64_t count = bytes / sizeof(float);
    const BufferId from = builder.constant(ElementType::f32, count, 1), to = builder.output(ElementType::f32, count);
    builder.launch("copy", {}, {.dims = {static_cast<std::int64_t>(count)}, .scalars = {}}, {{from}, {to}});
    const Timed timed = run_step(device, std::move(builder).seal(1));
    if (!(timed.seconds > 0)) continue;
    // The largest size, not the fastest: smaller ones may have come from a cache.
    ceiling = {
        timed.cost.bytes / timed.seconds,
        fmt::format("copy of {} by compute units, best of {}; reads and writes count", format_bytes(bytes), kMeasured)};
    if (timed.seconds > kTooLong / 4) break;
  }
  return ceiling;
}

Ceiling product_ceiling(Device& device, Precision precision) {
  const ElementType type = storage_of(precision);
  Ceiling best;
  for (std::int64_t size = 512; size <= 8192; size *= 2) {
    StepBuilder builder(1);
    const auto elements = static_cast<std::uint64_t>(size * size);
    const BufferId a = builder.uniform(type, elements), b = builder.uniform(type, elements),
                   c = builder.output(type, elements);
    const KernelShape shape{.type = type,
                            .precision = precision,
                            .dims = {size, size, size, gemm_flags(false, false, 1)},
                            .scalars = {1, 0}};
    builder.launch("gemm", {}, shape, {{a}, {b}, {c}});
    const Timed timed = run_step(device, std::move(builder).seal(1));
    if (!(timed.seconds > 0)) continue;
    const double rate = timed.cost.flop / timed.seconds;
    if (!best.value || rate > *best.value)
      best = {rate,
              fmt::format("matrix product {0} x {0} x {0} in {1}, best of {2}", size, name_of(precision), kMeasured)};
    if (timed.seconds > kLongEnough) break;
  }
  if (!best.value) best.how = "the clock saw no time pass";
  return best;
}

// No failure is fatal: a ceiling that fails has a reason.
template <class Measure>
Ceiling attempt(Measure&& measure) {
  try {
    return measure();
  } catch (const std::exception& error) {
    return {std::nullopt, error.what()};
  }
}

Ceilings device_ceilings(const std::string& name) {
  Ceilings ceilings;
  ceilings.device = name;
  std::unique_ptr<Device> device;
  try {
    device = open_device(name, {});
  } catch (const std::exception& error) {
    ceilings.bandwidth = {std::nullopt, error.what()};
    for (const Precision precision : package::kPrecisions) ceilings.compute[precision] = {std::nullopt, error.what()};
    return ceilings;
  }
  const DeviceInfo info = device->info();
  ceilings.bandwidth = attempt([&] { return bandwidth_ceiling(*device, info); });
  for (const Precision precision : package::kPrecisions) {
    const auto& offered = info.precisions;
    ceilings.compute[precision] =
        !precision_named(name_of(precision))
            ? Ceiling{std::nullopt, fmt::format("no kernel of the catalogue computes in {}", name_of(precision))}
        : std::find(offered.begin(), offered.end(), precision) == offered.end()
            ? Ceiling{std::nullopt, name + " does not offer this precision"}
            : attempt([&] { return product_ceiling(*device, precision); });
  }
  return ceilings;
}

}  // namespace

Ceilings measure_ceilings(package::Backend backend, int device, int threads) {
  if (backend == package::Backend::cpu) return cpu_ceilings(threads);
  return device_ceilings(fmt::format("{}:{}", package::name_of(backend), device));
}

}  // namespace weir::bench
