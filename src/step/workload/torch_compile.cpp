// Compiled regions with graph breaks between them: region A, then B and C in parallel, then a merge. At a break the
// host reads a value from the earlier regions, and the later ones depend on what it returns. Element-wise operations
// that follow each other are one kernel, which the device compiles; or one kernel each, in mode eager.
#include <algorithm>

#include "kernel/region.h"
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
        break_ns_(params.integer("break_us") * 1000),
        is_compiled_(params.choice("mode") == "compiled") {}

  Step build() {
    using enum RegionOp;
    const Operand x = samples(rows_ * features_);
    const Operand scaled = region(kRegionA, x, {mul, add, relu}, {1.5f, 0.1f});
    const Operand a = region(kRegionA, gemm(kRegionA, scaled), {gelu});
    const Operand mean_of_a = graph_break({{kRegionA, a}}, kRegionB);

    const Operand shifted_b = region(kRegionB, a, {add_row}, {1}, {mean_of_a});
    const Operand shifted_c = region(kRegionC, a, {add_row}, {-1}, {mean_of_a});
    const Operand product_b = gemm(kRegionB, shifted_b), product_c = gemm(kRegionC, shifted_c);
    const Operand b = region(kRegionB, product_b, {clamp, mul}, {-2, 2, 0.5f});
    const Operand c = region(kRegionC, product_c, {abs, add}, {0.25f});
    const Operand mean = graph_break({{kRegionB, b}, {kRegionC, c}}, kMerge);

    const Operand out = whole();
    const Operand centred = region(kMerge, b, {add_matrix, add_row}, {1, -1}, {c, mean});
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

  // `added` are the operands of add_row and add_matrix, in order.
  Operand region(Role role, Operand in, std::initializer_list<RegionOp> ops,
                 std::array<float, kMaxScalars> scalars = {}, const std::vector<Operand>& added = {}) {
    const Operand out = whole();
    std::vector<Operand> between;  // what the kernels of eager mode pass on
    for (std::size_t i = 1; i < ops.size() && !is_compiled_; ++i) between.push_back(whole());
    each(role, [&](Lane lane, Part rows) {
      const KernelShape shape = layers_.shape({rows.count, features_, region_ops(ops)}, scalars);
      const RegionItems items = region_items(shape);
      const auto add_operand = [&](const RegionItem& item, std::vector<Operand>& operands) {
        if (item.operand == 0) return;
        const Operand& own = added[static_cast<std::size_t>(item.operand) - 1];
        operands.push_back(item.op == RegionOp::add_row ? own : slice(own, rows, features_));
      };
      if (is_compiled_) {
        std::vector<Operand> operands = {slice(in, rows, features_)};
        for (const RegionItem& item : items) add_operand(item, operands);
        operands.push_back(slice(out, rows, features_));
        step_.launch("region", lane, shape, operands);
        return;
      }
      const std::vector<RegionPart> parts = unfused(shape);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        std::vector<Operand> operands = {slice(i == 0 ? in : between[i - 1], rows, features_)};
        add_operand(items[i], operands);
        operands.push_back(slice(i + 1 == parts.size() ? out : between[i], rows, features_));
        step_.launch(parts[i].kernel, lane, parts[i].shape, operands);
      }
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
  bool is_compiled_;
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
                  choice_param("mode",
                               "compiled: a kernel per element-wise region, compiled at run time; eager: a kernel per "
                               "operation, built ahead",
                               "compiled", {"compiled", "eager"}),
              },
          .roles = {"region_a", "region_b", "region_c", "merge"},
          .build = build_model<Compiled>};
}

}  // namespace weir::workload_list
