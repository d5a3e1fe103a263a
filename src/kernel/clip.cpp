// What an optimizer needs before a step: the step's number, the factor on gradients that keeps their norm below a
// limit, and the learning rate. Computed from sums of squares; state is {number of the step, factor, rate}, so that a
// graph that is replayed counts on. Scalars are {limit, rate, least rate}, dims {sums, decay, warm-up steps, total
// steps}.
#include <numbers>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

constexpr float kMargin = 1e-6f;  // same value in clip.cuh and clip.cl: avoids a division by a norm of 0
enum Decay : std::int64_t { kNone, kLinear, kCosine };

// The rate rises in equal parts to that of the first step after the warm-up, and falls to the least one.
float rate_after(float done, const KernelShape& shape) {
  const auto warmup = static_cast<float>(shape.dims[2]), total = static_cast<float>(shape.dims[3]);
  const float rate = shape.scalars[1], least = shape.scalars[2];
  if (done < warmup) return rate * ((done + 1) / warmup);
  if (shape.dims[1] == kNone) return rate;
  const float progress = std::min(1.0f, (done - warmup) / std::max(1.0f, total - warmup));
  const float left = shape.dims[1] == kCosine ? 0.5f + 0.5f * std::cos(3.14159265f * progress) : 1 - progress;
  return least + (rate - least) * left;
}

void run_block(const KernelCall& call, std::uint32_t) {
  const float* const squares = operand<const float>(call, 0);
  float* const state = operand<float>(call, 1);
  const float limit = call.shape.scalars[0];
  const float norm = std::sqrt(sum_of(call.shape.dims[0], [&](std::int64_t i) { return squares[i]; }));
  state[2] = rate_after(state[0], call.shape);
  state[0] += 1;
  state[1] = limit > 0 ? std::min(1.0f, limit / (norm + kMargin)) : 1.0f;
}

void reference(const KernelCall& call) {
  double sum = 0;
  for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) sum += operand<const float>(call, 0)[i];
  const double limit = call.shape.scalars[0], allowed = limit / (std::sqrt(sum) + static_cast<double>(kMargin));
  float* const state = operand<float>(call, 1);
  const double rate = call.shape.scalars[1], least = call.shape.scalars[2], done = state[0];
  const auto warmup = call.shape.dim(2), span = std::max(1.0, call.shape.dim(3) - warmup);
  const double turn = std::numbers::pi * std::min(1.0, (done - warmup) / span);  // half a turn over the whole decay
  double now = rate;
  if (done < warmup) {
    now = rate * (done + 1) / warmup;
  } else if (call.shape.dims[1] != kNone) {
    const double gone = call.shape.dims[1] == kCosine ? std::pow(std::sin(turn / 2), 2) : turn / std::numbers::pi;
    now = rate + (least - rate) * gone;
  }
  state[0] += 1;
  state[2] = static_cast<float>(now);
  state[1] = limit > 0 && allowed < 1 ? static_cast<float>(allowed) : 1.0f;
}

}  // namespace

Kernel clip() {
  return {.name = "clip",
          .summary = "the next step's number, the factor that limits its gradients, and its rate",
          .operands = [](const KernelShape&) -> std::string_view { return "ru"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], 3}; },
          .cost = [](const KernelShape& shape) { return Cost{shape.dim(0) + 12, 4 * shape.dim(0) + 24}; },
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = reference,
          // 15 for the sum of squares as in square_sum, halved by the root; then the root, the margin, the quotient.
          // The rate: 4 for the quotient and the difference, 4 for pi and the cosine, 3 to get from there to the rate,
          // of values that are at most the root of 3 above the mean square of the three.
          .tolerance = [](const KernelShape&) { return storage_tolerance(ElementType::f32, 20); },
          // clip.cuh: one block, because there is only one number to compute.
          .geometry = [](const KernelShape&) { return Geometry{1, kThreads}; },
          .types = "ff"};
}

}  // namespace weir::catalogue
