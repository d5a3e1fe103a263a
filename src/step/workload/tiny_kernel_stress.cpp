// The dispatch limit: streams full of kernels that end before the next one is launched.
#include "kernel/chain.h"
#include "step/workload/list.h"

namespace weir::workload_list {
namespace {

constexpr int kKernelsPerOperation = 4;  // x*1.5, +0.5, abs, clamp to 0..10

KernelShape operation_shape(int kernel, std::int64_t n, Precision precision) {
  KernelShape shape{.type = storage_of(precision), .precision = precision, .dims = {n}, .scalars = {}};
  switch (kernel) {
    case 0:
      shape.dims[1] = chain_ops({ChainOp::mul});
      shape.scalars = {1.5f};
      break;
    case 1:
      shape.dims[1] = chain_ops({ChainOp::add});
      shape.scalars = {0.5f};
      break;
    case 2:
      shape.dims[1] = chain_ops({ChainOp::abs});
      break;
    default:
      shape.dims[1] = chain_ops({ChainOp::clamp});
      shape.scalars = {0.0f, 10.0f};
  }
  return shape;
}

Step build_tiny_kernel_stress(const Params& params, int stream_count) {
  const std::int64_t n = params.integer("elements");
  const std::int64_t operations = params.integer("operations");
  const ElementType type = storage_of(params.precision);
  StepBuilder step(params.seed);

  // Each operation has its own slice of input and output, so a lost or repeated one shows in the result.
  std::vector<BufferId> inputs, outputs;
  for (int s = 0; s < stream_count; ++s) {
    inputs.push_back(step.uniform(type, static_cast<std::uint64_t>(operations * n), 8.0f));
    outputs.push_back(step.output(type, static_cast<std::uint64_t>(operations * n)));
  }
  const auto launch = [&](int stream, std::int64_t operation, int kernel) {
    const auto s = static_cast<std::size_t>(stream);
    const Operand out{outputs[s], static_cast<std::uint64_t>(operation * n), static_cast<std::uint64_t>(n)};
    const Operand in{kernel == 0 ? inputs[s] : outputs[s], out.offset, out.count};
    step.launch("chain", {.stream = static_cast<StreamId>(stream)}, operation_shape(kernel, n, params.precision),
                {in, out});
  };

  if (params.choice("order") == "interleaved") {
    for (std::int64_t operation = 0; operation < operations; ++operation)
      for (int kernel = 0; kernel < kKernelsPerOperation; ++kernel)
        for (int s = 0; s < stream_count; ++s) launch(s, operation, kernel);
  } else {
    for (int s = 0; s < stream_count; ++s)
      for (std::int64_t operation = 0; operation < operations; ++operation)
        for (int kernel = 0; kernel < kKernelsPerOperation; ++kernel) launch(s, operation, kernel);
  }
  step.work(static_cast<double>(operations) * kKernelsPerOperation * stream_count);
  return std::move(step).seal(stream_count);
}

}  // namespace

Workload tiny_kernel_stress() {
  return {.name = "tiny_kernel_stress",
          .summary = "Thousands of tiny dependent kernels per stream",
          .category = "latency_sensitive",
          .priority = 0,
          .unit = "commands/s",
          .scaling = Scaling::grows,
          .shows = "dispatch limit",
          .streams = {1, 16, 128},
          .params =
              {
                  integer_param("operations", "operations per stream, four kernels each", {4, 100, 100}, 1, 100'000),
                  integer_param("elements", "elements that each kernel works on", {256, 256, 256}, 1, 1 << 24),
                  choice_param("order", "issue order: streams alternate, or one stream after the other", "interleaved",
                               {"interleaved", "stream_major"}),
              },
          .build = build_tiny_kernel_stress};
}

}  // namespace weir::workload_list
