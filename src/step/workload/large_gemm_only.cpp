// The compute reference: one large GEMM per stream, without pressure on the queues.
#include "step/workload/list.h"

namespace weir::workload_list {
namespace {

Step build_large_gemm_only(const Params& params, int stream_count) {
  const std::int64_t n = params.integer("size");
  const ElementType type = storage_of(params.precision);
  const auto elements = static_cast<std::uint64_t>(n * n);
  StepBuilder step(params.seed);
  for (int s = 0; s < stream_count; ++s) {
    const BufferId a = step.uniform(type, elements);
    const BufferId b = step.uniform(type, elements);
    const BufferId c = step.output(type, elements);
    step.launch("gemm", {.stream = static_cast<StreamId>(s)},
                {.type = type, .precision = params.precision, .dims = {n, n, n, 0}, .scalars = {1, 0}},
                {{a}, {b}, {c}});
  }
  const double size = static_cast<double>(n);
  step.work(2 * size * size * size * stream_count * 1e-12);
  return std::move(step).seal(stream_count);
}

}  // namespace

Workload large_gemm_only() {
  return {.name = "large_gemm_only",
          .summary = "One large GEMM per stream: the compute reference",
          .category = "latency_sensitive",
          .priority = 0,
          .unit = "TFLOP/s",
          .scaling = Scaling::grows,
          .shows = "compute reference, no queue pressure",
          .streams = {1, 4, kMaxStreams},
          .params = {integer_param("size", "rows and columns of each matrix", {96, 512, 8192}, 1, 65536)},
          .build = build_large_gemm_only};
}

}  // namespace weir::workload_list
