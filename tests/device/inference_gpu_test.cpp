// Kernels for inference, routing and images on a real GPU against their references, and how fast they are. Skipped
// where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "device/cuda.h"
#include "device/gpu.h"
#include "device/gpu_cases.h"
#include "kernel/attention.h"
#include "kernel/im2col.h"
#include "kernel/ragged_gemm.h"
#include "run/check.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

using namespace gpu_cases;
using Dims = std::array<std::int64_t, kMaxDims>;
using Scalars = std::array<float, kMaxScalars>;

constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};

class InferenceCuda : public CudaTest {
 protected:
  void expect_right(const Step& step, const std::string& what) {
    const Placement placement = natural(step);
    const auto session = device().prepare(step, placement, {});
    iterate(*session, *inline_submitter(step, *session), {});
    const CheckReport report = check_outputs(step, *session);
    EXPECT_EQ(report.status, CheckReport::Status::passed) << what << ": " << report.reason;
  }

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

 private:
};

// What a read operand holds before the launch.
struct Contents {
  enum Kind { uniform, integers, constant, indices } kind = uniform;
  float value = 1;  // scale, limit or value
};

struct Case {
  std::string_view kernel;
  KernelShape shape;
  std::vector<Contents> contents;  // of operands that are not written whole, in order
  std::uint64_t offset = 0;        // of every operand in its buffer, so that runs are not aligned
};

Step step_of(const Case& test, int launches = 1) {
  const Kernel& body = kernel(kernel_named(test.kernel));
  const auto extents = body.extents(test.shape);
  const std::string_view modes = body.operands(test.shape);
  StepBuilder builder(11);
  std::vector<Operand> operands;
  std::size_t given = 0;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const auto count = static_cast<std::uint64_t>(extents[i]);
    const std::uint64_t all = count + test.offset;
    const ElementType type = body.type_of(test.shape, i);
    if (modes[i] == 'w') {
      operands.push_back({builder.output(type, all), test.offset, count});
      continue;
    }
    const Contents contents = given < test.contents.size() ? test.contents[given] : Contents{};
    ++given;
    const BufferId buffer = contents.kind == Contents::integers
                                ? builder.integers(all, static_cast<std::int64_t>(contents.value))
                            : contents.kind == Contents::constant ? builder.constant(type, all, contents.value)
                            : contents.kind == Contents::indices  ? builder.indices(all)
                                                                  : builder.uniform(type, all, contents.value, 0.25f);
    operands.push_back({buffer, test.offset, count});
  }
  for (int i = 0; i < launches; ++i) builder.launch(test.kernel, {}, test.shape, operands);
  return std::move(builder).seal(1);
}

std::vector<Case> cases() {
  using enum Contents::Kind;
  std::vector<Case> all;
  for (const ElementType type : kFloats) {
    for (const std::uint64_t offset : {0u, 1u}) {
      const auto list = [&](std::string_view kernel, Dims dims, Scalars scalars, std::vector<Contents> contents) {
        all.push_back({kernel, {.type = type, .dims = dims, .scalars = scalars}, std::move(contents), offset});
      };
      for (const auto [rows, columns] :
           {std::array<std::int64_t, 2>{1, 1}, {7, 3}, {130, 257}, {5, 32000}, {20000, 2}, {3, 100'001}})
        list("arg_max", {rows, columns}, {}, {{uniform, 2}});
      for (const auto [rows, columns, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                            {9, 64, 64},
                                            {2048, 64, 8},
                                            {2048, 8, 2},
                                            {3, 257, 64},
                                            {1, 260, 64},
                                            {40, 1000, 8},
                                            {2, 4097, 40},
                                            {1, 100'000, 64},
                                            {3, 32'000, 1}}) {
        list("top_k", {rows, columns, k}, {}, {{uniform, 2}});
        list("top_k", {rows, columns, k}, {}, {{constant, 1.5f}});  // all tie
      }
      for (const auto [sequences, queries, positions, heads, head_dim] : {std::array<std::int64_t, 5>{1, 1, 1, 1, 1},
                                                                          {5, 1, 300, 3, 64},
                                                                          {2, 1, 2048, 2, 128},
                                                                          {3, 5, 77, 2, 40},
                                                                          {2, 8, 130, 1, 128},
                                                                          {2, 2, 33, 2, 80},
                                                                          {4, 9, 9, 2, 3},
                                                                          {1, 70, 150, 2, 17},
                                                                          {2, 65, 65, 1, 64},
                                                                          {1, 512, 512, 2, 64},
                                                                          {2, 130, 150, 1, 128}}) {
        const Dims dims{sequences, queries, positions, heads_of(heads, head_dim)};
        const auto most = static_cast<float>(positions);
        list("attention", dims, {}, {{uniform, 2}, {uniform, 2}, {uniform, 2}, {integers, most + 2}});
        list("attention", dims, {}, {{uniform, 2}, {uniform, 2}, {uniform, 2}, {constant, most}});
      }
      for (const auto& dims : {Dims{1, 1, 1, 1}, Dims{7, 3, 10, 33}, Dims{16, 1, 64, 1024}, Dims{4, 40, 40, 500}}) {
        const auto slots = static_cast<float>(dims[0]), most = static_cast<float>(dims[2]);
        list("cache_write", dims, {slots}, {{uniform, 2}, {indices}, {integers, most + 3}, {uniform, 1}});
        list("cache_write", dims, {slots}, {{uniform, 2}, {constant, -1}, {integers, most + 3}, {uniform, 1}});
      }
      for (const auto& dims : {Dims{1, 1, 1, 1}, Dims{100, 33, 2, 20}, Dims{500, 1024, 2, 100}, Dims{9, 64, 8, 5}})
        list("combine", dims, {7},
             {{uniform, 1}, {integers, 8}, {integers, static_cast<float>(dims[3]) + 1}, {uniform, 1}});
      for (const auto& dims : {Dims{2, 9, 7, image_patch(3, 3, 1, 1)}, Dims{2, 56, 56, image_patch(64, 3, 2, 1)},
                               Dims{3, 30, 31, image_patch(3, 7, 2, 3)}, Dims{4, 5, 5, image_patch(5, 5, 5, 0)}})
        list("im2col", dims, {}, {{uniform, 1}});
      for (const auto& dims : {Dims{1, 1, 1, 1}, Dims{5, 17, 33, 3}, Dims{4, 224, 224, 3}, Dims{3, 4, 5, 70}})
        list("augment", dims, {0.45f, 4.4f}, {{uniform, 1}, {integers, 4}});
    }
  }
  all.push_back({"attention",
                 {.type = ElementType::f16, .dims = {16, 1, 2048, heads_of(16, 64)}},
                 {{uniform, 2}, {uniform, 2}, {uniform, 2}, {integers, 2050}}});
  const auto list = [&](std::string_view kernel, Dims dims, std::vector<Contents> contents) {
    all.push_back({kernel, {.type = ElementType::i32, .dims = dims}, std::move(contents)});
  };
  for (const auto [sequences, speculated] : {std::array<std::int64_t, 2>{1, 1}, {33, 4}, {5000, 7}})
    list("accept", {sequences, speculated}, {{integers, 2}, {integers, 2}, {integers, 1000}});
  for (const std::int64_t slots : {1, 255, 20000}) list("advance", {slots}, {{integers, 3}, {integers, 3}});
  for (const auto [slots, prompts] : {std::array<std::int64_t, 2>{1, 1}, {64, 10}, {1000, 999}, {600, 2}, {3, 300}})
    list("admit", {slots, prompts, 512, 64}, {{integers, 3}, {integers, 9}});
  for (const auto [assignments, experts, picks] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {4096, 64, 2}, {65536, 256, 8}, {1000, 7, 1}, {333, 100, 3}}) {
    const auto most = static_cast<float>(experts);
    list("route", {assignments, experts, picks}, {{integers, most}});
    list("route", {assignments, experts, picks}, {{integers, most + 2}});  // some are no expert
    list("route", {assignments, experts, picks}, {{constant, most - 1}});  // one has them all
  }
  return all;
}

std::string text_of(const Case& test) {
  std::string text = std::string(test.kernel) + ' ' + std::string(name_of(test.shape.type));
  for (const std::int64_t dim : test.shape.dims) text += ' ' + std::to_string(dim);
  return text + " at " + std::to_string(test.offset);
}

TEST_F(InferenceCuda, every_kernel_computes_what_its_reference_does) {
  for (const Case& test : cases()) expect_right(step_of(test), text_of(test));
}

// A layer of experts: route, group, two products per expert, and the sum of what they made.
struct Layer {
  std::int64_t tokens, picks, experts, capacity, width, hidden;
  bool is_crowded = false;  // all tokens pick the same expert
};

Step step_of(const Layer& layer, ElementType type) {
  const auto [tokens, picks, experts, capacity, width, hidden, is_crowded] = layer;
  const auto size = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
  const std::int64_t assignments = tokens * picks;
  StepBuilder builder(3);
  const BufferId ids = is_crowded ? builder.constant(ElementType::i32, size(assignments), 1)
                                  : builder.integers(size(assignments), experts);
  const BufferId offsets = builder.output(ElementType::i32, size(experts + 1));
  const BufferId slots = builder.output(ElementType::i32, size(assignments));
  const BufferId sources = builder.output(ElementType::i32, size(assignments));
  const BufferId in = builder.uniform(type, size(tokens * width));
  const BufferId grouped = builder.output(type, size(assignments * width));
  const BufferId up = builder.uniform(type, size(experts * width * hidden), 0.1f);
  const BufferId down = builder.uniform(type, size(experts * hidden * width), 0.1f);
  const BufferId between = builder.output(type, size(experts * capacity * hidden));
  const BufferId made = builder.output(type, size(experts * capacity * width));
  const BufferId weights = builder.uniform(type, size(assignments));
  const BufferId out = builder.output(type, size(tokens * width));
  builder.launch("route", {}, {.type = ElementType::i32, .dims = {assignments, experts, picks}},
                 {{ids}, {offsets}, {slots}, {sources}});
  builder.launch("gather", {}, {.type = type, .dims = {assignments, width, tokens}}, {{in}, {sources}, {grouped}});
  const auto part = [&](BufferId buffer, std::int64_t e, std::int64_t count) {
    return Operand{buffer, size(e * count), size(count)};
  };
  const float expected = static_cast<float>(assignments) / static_cast<float>(experts);
  for (std::int64_t e = 0; e < experts; ++e) {
    builder.launch("ragged_gemm", {},
                   {.type = type,
                    .dims = {capacity, hidden, width, ragged_expert(e, experts, true, true)},
                    .scalars = {expected, static_cast<float>(assignments)}},
                   {{grouped}, part(up, e, width * hidden), {offsets}, part(between, e, capacity * hidden)});
    builder.launch("ragged_gemm", {},
                   {.type = type,
                    .dims = {capacity, width, hidden, ragged_expert(e, experts, false, false)},
                    .scalars = {expected}},
                   {part(between, e, capacity * hidden),
                    part(down, e, hidden * width),
                    {offsets},
                    part(made, e, capacity * width)});
  }
  builder.launch("combine", {},
                 {.type = type, .dims = {tokens, width, picks, capacity}, .scalars = {static_cast<float>(experts)}},
                 {{made}, {ids}, {slots}, {weights}, {out}});
  return std::move(builder).seal(1);
}

TEST_F(InferenceCuda, experts) {
  for (const ElementType type : kFloats)
    for (const Layer& layer :
         {Layer{50, 2, 4, 40, 64, 128}, Layer{33, 3, 8, 5, 33, 67},  // full experts drop tokens
          Layer{300, 2, 8, 100, 256, 512}, Layer{100, 2, 3, 200, 40, 136, true}, Layer{7, 1, 16, 4, 72, 24}})
      expect_right(step_of(layer, type), std::string(name_of(type)) + ", " + std::to_string(layer.tokens) +
                                             " tokens, " + std::to_string(layer.experts) + " experts");
}

// Printed, not judged: other work on the GPU must not fail a test.
TEST_F(InferenceCuda, speed) {
  using enum Contents::Kind;
  constexpr int kLaunches = 20;
  using enum ElementType;
  const std::vector<Contents> rows = {{uniform, 2}, {uniform, 2}, {uniform, 2}, {constant, 1 << 20}};
  for (const Case& test : {Case{"attention", {.type = f16, .dims = {16, 1, 2048, heads_of(16, 64)}}, rows},
                           Case{"attention", {.type = f16, .dims = {16, 5, 2048, heads_of(16, 64)}}, rows},
                           Case{"attention", {.type = f32, .dims = {16, 1, 2048, heads_of(16, 64)}}, rows},
                           Case{"attention", {.type = f16, .dims = {1, 512, 512, heads_of(16, 64)}}, rows},
                           Case{"attention", {.type = f16, .dims = {8, 512, 512, heads_of(16, 64)}}, rows},
                           Case{"top_k", {.type = f32, .dims = {1, 100'000, 64}}, {{uniform, 2}}},
                           Case{"top_k", {.type = f32, .dims = {2048, 64, 8}}, {{uniform, 2}}},
                           Case{"arg_max", {.type = f32, .dims = {5, 32000}}, {{uniform, 2}}},
                           Case{"route", {.type = i32, .dims = {4096, 64, 2}}, {{integers, 64}}},
                           Case{"route", {.type = i32, .dims = {65536, 256, 8}}, {{integers, 256}}}}) {
    const double seconds = seconds_of(step_of(test, kLaunches)) / kLaunches;
    const Cost cost = kernel(kernel_named(test.kernel)).cost(test.shape);
    std::printf("%-60s %9.2f us %8.1f GB/s %8.2f TFLOP/s\n", text_of(test).c_str(), seconds * 1e6,
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
    std::printf("ragged_gemm %-48s %9.2f us %26.2f TFLOP/s\n", name_of(type).data(), seconds * 1e6,
                kernel(kernel_named("ragged_gemm")).cost(shape).flop / seconds * 1e-12);
  }
}

}  // namespace
}  // namespace weir
