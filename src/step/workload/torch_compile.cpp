// Compiled regions with graph breaks between them: region A, then B and C in parallel, then a merge. At a break the
// host reads a value from the earlier regions, and the later ones depend on what it returns.
#include <algorithm>

#include "kernel/chain.h"
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

// Parts that rows are cut into on up to 32 streams; beyond, each stream of a role has one.
constexpr std::int64_t kMinChunks = 8;

class Compiled : Model {
  enum Role : std::uint8_t { kRegionA, kRegionB, kRegionC, kMerge };

 public:
  Compiled(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1, 1, 1}),
        chunks_(std::max<std::int64_t>(kMinChunks, lanes_[kRegionA].count)),
        rows_(std::max(params.integer("rows"), chunks_)),
        features_(params.integer("features")),
        break_ns_(params.integer("break_us") * 1000) {}

  Step build() {
    const Operand x = samples(rows_ * features_);
    const Operand scaled = chain(kRegionA, x, {ChainOp::mul, ChainOp::add, ChainOp::relu}, {1.5f, 0.1f});
    const Operand product = gemm(kRegionA, scaled);
    const Operand a = whole();
    each(kRegionA, [&](Lane lane, Part rows) {
      layers_.gelu(lane, slice(product, rows, features_), rows.count * features_, slice(a, rows, features_));
    });
    const Operand mean_of_a = graph_break({{kRegionA, a}}, kRegionB);

    const Operand shifted_b = broadcast_add(kRegionB, a, mean_of_a, 1);
    const Operand shifted_c = broadcast_add(kRegionC, a, mean_of_a, -1);
    const Operand product_b = gemm(kRegionB, shifted_b), product_c = gemm(kRegionC, shifted_c);
    const Operand b = chain(kRegionB, product_b, {ChainOp::clamp, ChainOp::mul}, {-2, 2, 0.5f});
    const Operand c = chain(kRegionC, product_c, {ChainOp::abs, ChainOp::add}, {0.25f});
    const Operand mean = graph_break({{kRegionB, b}, {kRegionC, c}}, kMerge);

    const Operand sum = whole(), out = whole();
    each(kMerge, [&](Lane lane, Part rows) {
      layers_.add(lane, slice(b, rows, features_), slice(c, rows, features_), rows.count * features_, 1, 1,
                  slice(sum, rows, features_));
    });
    const Operand centred = broadcast_add(kMerge, sum, mean, -1);
    each(kMerge, [&](Lane lane, Part rows) {
      layers_.layer_norm(lane, slice(centred, rows, features_), rows.count, features_, slice(out, rows, features_));
    });
    return finish(rows_);
  }

 private:
  // The outputs of a region.
  struct Made {
    Role role;
    Operand values;
  };
  Operand whole() { return layers_.output(rows_ * features_); }
  template <class Body>
  void each(Role role, Body&& body) {
    for (std::int64_t i = 0; i < chunks_; ++i) body(lanes_[role][i], part_of(rows_, chunks_, i));
  }

  Operand chain(Role role, Operand in, std::initializer_list<ChainOp> ops, std::array<float, kMaxScalars> scalars) {
    const Operand out = whole();
    each(role, [&](Lane lane, Part rows) {
      step_.launch("chain", lane, layers_.shape({rows.count * features_, chain_ops(ops)}, scalars),
                   {slice(in, rows, features_), slice(out, rows, features_)});
    });
    return out;
  }
  Operand gemm(Role role, Operand in) {
    const Operand weights = layers_.weights(features_, features_), out = whole();
    each(role, [&](Lane lane, Part rows) {
      layers_.gemm(lane, slice(in, rows, features_), weights, {rows.count, features_, features_},
                   slice(out, rows, features_));
    });
    return out;
  }
  Operand broadcast_add(Role role, Operand in, Operand vector, float scale) {
    const Operand out = whole();
    each(role, [&](Lane lane, Part rows) {
      step_.launch("add", lane, layers_.shape({rows.count, features_, 1}, {1, scale}),
                   {slice(in, rows, features_), vector, slice(out, rows, features_)});
    });
    return out;
  }

  // The host reads the column means of the sum of `all`, works for a while, and passes them to the next regions. Each
  // graph ends where the host needs a value and starts where it has provided one.
  Operand graph_break(std::initializer_list<Made> all, Role after) {
    const std::int64_t parts = static_cast<std::int64_t>(all.size()) * chunks_;
    const Operand sums = layers_.output(parts * features_);
    std::int64_t part = 0;
    for (const Made& made : all)
      each(made.role, [&](Lane lane, Part rows) {
        layers_.sum(lane, slice(made.values, rows, features_), rows.count, features_, features_,
                    1 / static_cast<float>(rows_), slice(sums, {part++, 1}, features_));
      });
    const Lane asking = lanes_[all.begin()->role][0], answered = lanes_[after][0];
    const Operand mean = layers_.sum(asking, sums, parts, features_, features_);
    const Operand seen{step_.host(layers_.type(), elements(features_), Init::poison)};
    const Operand answer{step_.host(layers_.type(), elements(features_), Init::poison)};
    step_.copy(asking, mean, seen);
    step_.cut();
    step_.launch_on_host("graph_break", asking, layers_.shape({features_, break_ns_}), {seen, answer});
    step_.cut();
    const Operand given = layers_.output(features_);
    step_.copy(answered, answer, given);
    return given;
  }

  std::int64_t chunks_, rows_, features_, break_ns_;
};

}  // namespace

Workload torch_compile() {
  return {.name = "torch_compile",
          .summary = "Compiled regions with graph breaks between them",
          .category = "pipeline",
          .priority = 3,
          .unit = "samples/s",
          .scaling = Scaling::divided,
          .shows = "compiled regions (captured sub-graphs) with eager graph breaks between",
          .streams = {1, 8, kMaxStreams},
          .params =
              {
                  integer_param("rows", "samples; at least one per stream of a region", {32, 768, 4096}, kMinChunks,
                                1 << 20),
                  integer_param("features", "width of a sample", {16, 192, 1024}, 1, 32768),
                  integer_param("break_us", "how long the host looks at a value between regions", {50, 50, 50}, 0,
                                1'000'000),
              },
          .roles = {"region_a", "region_b", "region_c", "merge"},
          .build = build_model<Compiled>};
}

}  // namespace weir::workload_list
