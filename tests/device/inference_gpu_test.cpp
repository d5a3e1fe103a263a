// How fast kernels for inference and routing are on a real GPU; that they are right is the conformance table's
// business. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "device/gpu_cases.h"
#include "kernel/attention.h"
#include "kernel/ragged_gemm.h"
#include "lab/conformance/kernel_case.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

using namespace gpu_cases;
using conformance::KernelCase;
using conformance::kFloats;
using conformance::OperandContents;
using conformance::step_of;

class InferenceCuda : public CudaTest {
 protected:
  // Best duration of a step in seconds, over iterations after the first.
  double seconds_of(const Step& step) {
    const Placement placement = natural(step);
    const auto session = device().prepare(step, placement, {});
    iterate(*session, *inline_submitter(step, *session), {.iterations = 10});
    double best_ns = HUGE_VAL;
    const std::vector<IterationSpan> spans = session->take_spans();
    for (std::size_t i = 1; i < spans.size(); ++i)
      best_ns = std::min(best_ns, static_cast<double>(spans[i].ended_ns - spans[i].started_ns));
    return best_ns * 1e-9;
  }
};

// Printed, not judged: other work on the GPU must not fail a test.
TEST_F(InferenceCuda, speed) {
  using enum OperandContents::Kind;
  constexpr int kLaunches = 20;
  using enum ElementType;
  const std::vector<OperandContents> rows = {{}, {}, {}, {constant, 1 << 20}};
  for (const KernelCase& test :
       {KernelCase{"attention", {.type = f16, .dims = {16, 1, 2048, heads_of(16, 64)}}, "", rows},
        KernelCase{"attention", {.type = f16, .dims = {16, 5, 2048, heads_of(16, 64)}}, "", rows},
        KernelCase{"attention", {.type = f32, .dims = {16, 1, 2048, heads_of(16, 64)}}, "", rows},
        KernelCase{"attention", {.type = f16, .dims = {1, 512, 512, heads_of(16, 64)}}, "", rows},
        KernelCase{"attention", {.type = f16, .dims = {8, 512, 512, heads_of(16, 64)}}, "", rows},
        KernelCase{"top_k", {.type = f32, .dims = {1, 100'000, 64}}, "", {}},
        KernelCase{"top_k", {.type = f32, .dims = {2048, 64, 8}}, "", {}},
        KernelCase{"arg_max", {.type = f32, .dims = {5, 32000}}, "", {}},
        KernelCase{"route", {.type = i32, .dims = {4096, 64, 2}}, "", {{integers, 64}}},
        KernelCase{"route", {.type = i32, .dims = {65536, 256, 8}}, "", {{integers, 256}}}}) {
    const double seconds = seconds_of(step_of(test, kLaunches)) / kLaunches;
    const Cost cost = kernel(kernel_named(test.kernel)).cost(test.shape);
    std::printf("%-60s %9.2f us %8.1f GB/s %8.2f TFLOP/s\n", name_of(test).c_str(), seconds * 1e6,
                cost.bytes / seconds * 1e-9, cost.flop / seconds * 1e-12);
  }
  for (const ElementType type : kFloats) {
    constexpr std::int64_t kCapacity = 2048, kColumns = 4096, kDepth = 1024;
    StepBuilder builder(1);
    const BufferId ids = builder.constant(i32, kCapacity, 0), offsets = builder.output(i32, 2);
    const BufferId slots = builder.output(i32, kCapacity), sources = builder.output(i32, kCapacity);
    const BufferId a = builder.uniform(type, kCapacity * kDepth), b = builder.uniform(type, kDepth * kColumns);
    const BufferId c = builder.output(type, kCapacity * kColumns);
    const KernelShape shape{.type = type,
                            .dims = {kCapacity, kColumns, kDepth, ragged_expert(0, 1, false, false)},
                            .scalars = {static_cast<float>(kCapacity)}};
    builder.launch("route", {}, {.type = i32, .dims = {kCapacity, 1, 1}}, {{ids}, {offsets}, {slots}, {sources}});
    for (int i = 0; i < kLaunches; ++i) builder.launch("ragged_gemm", {}, shape, {{a}, {b}, {offsets}, {c}});
    const double seconds = seconds_of(std::move(builder).seal(1)) / kLaunches;
    std::printf("ragged_gemm %-48s %9.2f us %26.2f TFLOP/s\n", weir::name_of(type).data(), seconds * 1e6,
                kernel(kernel_named("ragged_gemm")).cost(shape).flop / seconds * 1e-12);
  }
}

}  // namespace
}  // namespace weir
