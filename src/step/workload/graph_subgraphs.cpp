// Independent subgraphs between a fork and a join: several MLPs process one input, and one product joins their outputs.
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

// Fork and join have one stream each, and the subgraphs share the others. Of two streams the first forks and joins; a
// single one does everything.
std::vector<RoleLanes> lanes_of(int stream_count) {
  if (stream_count < 3) return {{0, 1, 0}, {stream_count - 1, 1, 1}, {0, 1, 2}};
  return {{0, 1, 0}, {1, stream_count - 2, 1}, {stream_count - 1, 1, 2}};
}

Step build_graph_subgraphs(const Params& params, int stream_count) {
  const std::int64_t subgraphs = params.integer("subgraphs"), batch = params.integer("batch");
  const std::int64_t inputs = params.integer("inputs"), outputs = params.integer("outputs");
  const std::int64_t widths[] = {inputs, params.integer("hidden"), params.integer("hidden"), outputs};
  const auto lanes = lanes_of(stream_count);
  const RoleLanes &fork = lanes[0], &subgraph = lanes[1], &join = lanes[2];
  // With more streams than subgraphs, several streams share the rows of one.
  const std::int64_t pieces = (subgraph.count + subgraphs - 1) / subgraphs;
  if (pieces > batch)
    reject_setting("streams", std::to_string(stream_count),
                   fmt::format("{} subgraphs of {} rows do not feed as many", subgraphs, batch),
                   fmt::format("Use --streams {} or fewer, or --param batch={}.", subgraphs * batch + 2, pieces));

  StepBuilder step(params.seed, params.ranks);
  Layers layers(step, params.precision);
  const Operand x{step.sharded(layers.type(), static_cast<std::uint64_t>(batch * inputs))};
  const Operand normal = layers.layer_norm(fork[0], x, batch, inputs);

  // Layer by layer over all subgraphs, so that one submitting thread keeps all streams busy.
  const Operand made = layers.output(subgraphs * batch * outputs);  // [subgraphs][batch][outputs]
  std::vector<Operand> at(static_cast<std::size_t>(subgraphs), normal);
  for (int l = 0; l < 3; ++l) {
    const std::int64_t in = widths[l], out = widths[l + 1];
    const bool is_last = l == 2;
    for (std::int64_t g = 0; g < subgraphs; ++g) {
      Operand& here = at[static_cast<std::size_t>(g)];
      const Operand weights = layers.weights(in, out);
      const Operand product = is_last ? slice(made, {g, 1}, batch * out) : layers.output(batch * out);
      const Operand next = is_last ? product : layers.output(batch * out);
      for (std::int64_t p = 0; p < pieces; ++p) {
        const Lane lane = subgraph[g * pieces + p];
        const Part rows = part_of(batch, pieces, p);
        layers.gemm(lane, slice(here, rows, in), weights, {rows.count, out, in}, slice(product, rows, out));
        if (!is_last) layers.gelu(lane, slice(product, rows, out), rows.count * out, slice(next, rows, out));
      }
      here = next;
    }
  }

  const Operand joined = layers.transpose(join[0], made, subgraphs, batch, outputs);
  layers.gemm(join[0], joined, layers.weights(subgraphs * outputs, outputs), {batch, outputs, subgraphs * outputs});
  step.work(static_cast<double>(batch));
  return std::move(step).seal(stream_count);
}

}  // namespace

Workload graph_subgraphs() {
  return {.name = "graph_subgraphs",
          .summary = "Independent MLPs between a fork and a join",
          .category = "latency_sensitive",
          .priority = 2,
          .unit = "samples/s",
          .scaling = Scaling::divided,
          .shows = "independent subgraphs, fork and join",
          .streams = {1, 8, kMaxStreams},
          .params =
              {
                  integer_param("subgraphs", "independent MLPs", {8, 8, 8}, 1, 256),
                  integer_param("inputs", "width of the common input", {16, 256, 1024}, 1, 65536),
                  integer_param("hidden", "width of the two hidden layers of each", {32, 384, 2048}, 1, 65536),
                  integer_param("outputs", "width of what each makes, and of the join", {8, 128, 512}, 1, 65536),
                  integer_param("batch", "samples", {16, 32, 32}, 1, 65536),
              },
          .roles = {"fork", "subgraph", "join"},
          .build = build_graph_subgraphs};
}

}  // namespace weir::workload_list
