// The convoy effect: how large GEMMs on other streams affect the latency of tiny kernels.
#include <algorithm>

#include "kernel/chain.h"
#include "kernel/random.h"
#include "step/workload/list.h"

namespace weir::workload_list {
namespace {

enum KernelSize : std::uint8_t { kLarge, kSmall };

// One command to issue: the `part`-th of its lane.
struct Issue {
  int lane;
  std::int64_t part;
};

Step build_hetero_kernels(const Params& params, int stream_count) {
  const std::int64_t n = params.integer("size");
  const std::int64_t elements = params.integer("elements");
  const std::int64_t ratio = params.integer("ratio");
  const ElementType type = storage_of(params.precision);
  // A lane is the work of one stream; a single stream has two lanes, so that it does the same work as two streams.
  const int lane_count = std::max(2, stream_count);
  // Even lanes are large and odd ones small, so that every hardware queue shared by streams gets both kinds.
  const auto is_large = [](int lane) { return lane % 2 == 0; };

  StepBuilder step(params.seed);
  struct Data {
    BufferId a, b, c;
  };
  std::vector<Data> data;
  for (int lane = 0; lane < lane_count; ++lane) {
    const auto square = static_cast<std::uint64_t>(n * n);
    if (is_large(lane)) {
      data.push_back({step.uniform(type, square), step.uniform(type, square), step.output(type, square)});
    } else {
      // One output slice per kernel, so that a lost kernel is detected.
      const auto slices = static_cast<std::uint64_t>(ratio * elements);
      data.push_back({step.uniform(type, static_cast<std::uint64_t>(elements), 8.0f), 0, step.output(type, slices)});
    }
  }

  std::vector<Issue> order;
  if (params.choice("order") == "batched") {
    for (const bool large : {true, false})
      for (int lane = 0; lane < lane_count; ++lane)
        for (std::int64_t part = 0; is_large(lane) == large && part < (large ? 1 : ratio); ++part)
          order.push_back({lane, part});
  } else {
    for (std::int64_t part = 0; part < ratio; ++part)
      for (int lane = 0; lane < lane_count; ++lane)
        if (!is_large(lane) || part == 0) order.push_back({lane, part});
  }
  if (params.choice("order") == "random") {
    // Lanes are drawn at random; within a lane the parts stay in order, because each reads its predecessor's output.
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1].lane, order[random_bits(params.seed, i) % i].lane);
    std::vector<std::int64_t> next(static_cast<std::size_t>(lane_count), 0);
    for (Issue& issue : order) issue.part = next[static_cast<std::size_t>(issue.lane)]++;
  }

  double flop = 0;
  for (const Issue& issue : order) {
    const Data& own = data[static_cast<std::size_t>(issue.lane)];
    const auto stream = static_cast<StreamId>(issue.lane % stream_count);
    if (is_large(issue.lane)) {
      const KernelShape shape{.type = type, .precision = params.precision, .dims = {n, n, n, 0}, .scalars = {1, 0}};
      step.launch("gemm", {.stream = stream, .role = kLarge}, shape, {{own.a}, {own.b}, {own.c}});
      flop += 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
      continue;
    }
    // x*1.01 + 0.1 of the previous part's slice; the first reads the input.
    const KernelShape shape{.type = type,
                            .precision = params.precision,
                            .dims = {elements, chain_ops({ChainOp::mul, ChainOp::add})},
                            .scalars = {1.01f, 0.1f}};
    const auto count = static_cast<std::uint64_t>(elements);
    const auto part = static_cast<std::uint64_t>(issue.part);
    const Operand in = part == 0 ? Operand{own.a, 0, count} : Operand{own.c, (part - 1) * count, count};
    step.launch("chain", {.stream = stream, .role = kSmall}, shape, {in, {own.c, part * count, count}});
    flop += 2.0 * static_cast<double>(elements);
  }
  step.work(flop * 1e-9);
  return std::move(step).seal(stream_count);
}

}  // namespace

Workload hetero_kernels() {
  return {.name = "hetero_kernels",
          .summary = "Tiny kernels beside large GEMMs",
          .category = "latency_sensitive",
          .priority = 0,
          .unit = "GFLOP/s",
          .scaling = Scaling::grows,
          .shows = "convoy effect: a tiny kernel's latency next to large GEMMs, against alone",
          .streams = {1, 8, kMaxStreams},
          .params =
              {
                  integer_param("size", "rows and columns of the large GEMMs", {64, 384, 4096}, 1, 65536),
                  integer_param("elements", "elements of the small kernels", {1024, 1024, 1024}, 1, 1 << 24),
                  integer_param("ratio", "small kernels per small stream and iteration", {10, 10, 10}, 1, 10'000),
                  choice_param("order", "issue order", "alternating", {"alternating", "batched", "random"}),
              },
          .roles = {"large", "small"},
          .convoy_role = kSmall,
          .build = build_hetero_kernels};
}

}  // namespace weir::workload_list
