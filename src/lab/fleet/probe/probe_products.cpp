// Matrix products in three precisions: the rate of the device's arithmetic, the load under which its state is read, and
// the check of what it computes.
#include <algorithm>

#include "kernel/gemm.h"
#include "lab/fleet/probe/meter.h"

namespace weir::fleet {
namespace {

constexpr std::int64_t kLoadNs = 250'000'000;  // clocks and power follow a load within some ten milliseconds

struct ProductKind {
  const char* figure;
  ElementType type;
  Precision precision;
  std::int64_t large, small;
};
// fp8 rounds bf16 operands, which is a part of the product here as it is in training.
constexpr ProductKind kProducts[] = {
    {"gemm_fp32", ElementType::f32, Precision::fp32, 4096, 256},
    {"gemm_bf16", ElementType::bf16, Precision::bf16, 8192, 256},
    {"gemm_fp8", ElementType::bf16, Precision::fp8_e4m3, 8192, 256},
};

MeterPlan product_plan(const ProductKind& kind, bool is_large) {
  const std::int64_t size = is_large ? kind.large : kind.small;
  StepBuilder builder(1);
  const auto elements = static_cast<std::uint64_t>(size * size);
  const BufferId a = builder.uniform(kind.type, elements), b = builder.uniform(kind.type, elements),
                 c = builder.output(kind.type, elements);
  const KernelShape shape{.type = kind.type,
                          .precision = kind.precision,
                          .dims = {size, size, size, gemm_flags(false, false, 1)},
                          .scalars = {1, 0}};
  builder.launch("gemm", {}, shape, {{a}, {b}, {c}});
  MeterPlan plan{.figure = kind.figure, .to = {}, .step = std::move(builder).seal(1)};
  plan.amount = plan.step.cost().flop;
  plan.is_rate = true;
  plan.same = c;
  if (is_large) plan.least_ns = kLoadNs;
  return plan;
}

}  // namespace

void add_product_meters(const MeterContext& context, Meters& meters) {
  const auto& offered = context.info.precisions;
  for (const ProductKind& kind : kProducts) {
    if (!context.info.runs()) {
      meters.lacks(kind.figure, "commands take no time on this device");
    } else if (std::find(offered.begin(), offered.end(), kind.precision) == offered.end()) {
      meters.lacks(kind.figure, "the device does not offer this precision");
    } else {
      meters.add(kind.figure, [&] {
        MeterPlan plan = product_plan(kind, context.is_large);
        // Virtual time passes on the host's: a load of a quarter of a second is nothing to wait for.
        if (context.info.is_virtual) plan.least_ns = 0;
        plan.extra = context.extra(kind.figure);
        auto meter = std::make_unique<StepMeter>(context.device, std::move(plan));
        meter->is_load = true;
        return meter;
      });
    }
  }
}

}  // namespace weir::fleet
