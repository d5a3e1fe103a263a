// Every kernel of the catalogue in each of its types: one element, odd sizes, sizes that take the wide paths, and
// unaligned operands. gemm has its own group; so have probes, because they have no reference.
#include <algorithm>
#include <array>

#include "kernel/attention.h"
#include "kernel/chain.h"
#include "kernel/im2col.h"
#include "kernel/ragged_gemm.h"
#include "kernel/region.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/kernel_case.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

using Dims = std::array<std::int64_t, kMaxDims>;
using Scalars = std::array<float, kMaxScalars>;
using enum OperandContents::Kind;

class CaseList {
 public:
  // Aligned, and with a margin if the launch is small.
  void add(std::string_view kernel, ElementType type, Dims dims, Scalars scalars = {},
           std::vector<OperandContents> contents = {}, const std::string& sizes = {}) {
    KernelCase each{kernel, {type, precision_of(type), dims, scalars}, sizes, std::move(contents)};
    cases_.push_back(conformance_case("kernels", each));
    const auto extents = weir::kernel(kernel_named(kernel)).extents(each.shape);
    if (*std::max_element(extents.begin(), extents.end()) > 70'000) return;
    each.margin = 1;
    cases_.push_back(conformance_case("kernels", std::move(each)));
  }
  void add(ConformanceCase each) { cases_.push_back(std::move(each)); }
  Cases take() { return std::move(cases_); }

 private:
  Cases cases_;
};

void add_elementwise(CaseList& list, ElementType type) {
  using enum ChainOp;
  for (const std::int64_t n : {1, 257, 16'385, 300'007}) {
    list.add("chain", type, {n, chain_ops({mul, add, abs, clamp})}, {1.5f, 0.5f, 0.0f, 2.0f}, {},
             std::to_string(n) + " mul add abs clamp");
    list.add("chain", type, {n, chain_ops({relu, square, square, add})}, {-0.75f}, {},
             std::to_string(n) + " relu square square add");
    list.add("gelu", type, {n});
    list.add("gelu_backward", type, {n});
    // The average of squares is never negative in real data.
    list.add("adam", type, {n}, {1e-2f, 0.9f, 0.999f, 1e-8f}, {{}, {}, {}, {uniform, 2, 2.25f}});
    // Bias correction matters in the first steps.
    list.add("adamw", type, {n}, {0.9f, 0.999f, 1e-8f, 0.1f}, {{}, {}, {}, {uniform, 2, 2.25f}, {uniform, 1, 2}});
  }
  // Of more than one rank: rows are parts of longer ones.
  for (const Dims& dims : {Dims{1, 1, 0, 0}, Dims{1, 16'385, 0, 77}, Dims{63, 257, 300, 43},
                           Dims{3, 100'003, 400'012, 0}, Dims{1, 300'007, 0, 5'000'000'000}})
    for (const float probability : {0.1f, 0.75f})
      list.add(
          "dropout", type, dims, {probability, 1 / (1 - probability)}, {{}, {constant, 12'345}, {constant, 16'000'001}},
          std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + " by " + (probability < 0.5f ? "0.1" : "0.75"));
  constexpr std::pair<ChainOp, const char*> kOps[] = {{mul, "mul"},     {add, "add"},   {abs, "abs"},
                                                      {clamp, "clamp"}, {relu, "relu"}, {square, "square"}};
  for (const auto& [op, name] : kOps)
    for (const std::int64_t n : {1'023, 262'145})
      list.add("chain", type, {n, chain_ops({op})}, {-0.5f, 0.75f}, {}, std::to_string(n) + " " + name);
  list.add("chain", type, {1'000, 0}, {}, {}, "1000 nothing");
}

// Rows of any width and of none that matters, with and without operands to add, in blocks of their own and across them.
void add_regions(CaseList& list, ElementType type) {
  using enum RegionOp;
  const auto put = [&](Dims sizes, std::initializer_list<RegionOp> ops, Scalars scalars, const char* words) {
    const std::string name = std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + " " + words;
    list.add("region", type, {sizes[0], sizes[1], region_ops(ops)}, scalars, {}, name);
  };
  for (const Dims& sizes : {Dims{1, 1}, Dims{7, 33}, Dims{130, 257}, Dims{3, 20'011}, Dims{300, 1'024}}) {
    put(sizes, {RegionOp::mul, RegionOp::add, relu}, {1.5f, 0.5f}, "mul add relu");
    put(sizes, {RegionOp::gelu}, {}, "gelu");
    put(sizes, {clamp, square, RegionOp::abs, RegionOp::add}, {-2, 2, -0.5f}, "clamp square abs add");
    put(sizes, {add_row}, {-1}, "row");
    put(sizes, {add_matrix, add_row, relu}, {1, -1}, "matrix row relu");
    put(sizes, {RegionOp::mul, add_row, add_matrix, add_row}, {0.5f, 1, -0.25f, 2}, "mul row matrix row");
  }
}

void add_rows(CaseList& list, ElementType type) {
  for (const auto [rows, columns] :
       {std::array<std::int64_t, 2>{1, 1}, {7, 1}, {1, 1'000}, {130, 257}, {3, 20'011}, {2'048, 33}, {64, 2'048}}) {
    list.add("softmax", type, {rows, columns});
    list.add("softmax", type, {rows, columns, 1});
    list.add("layer_norm", type, {rows, columns}, {1e-5f});
    list.add("batch_norm", type, {rows, columns}, {1e-5f}, {{}, {}, {uniform, 0.4f, 0.6f}});
    list.add("reduce", type, {rows, columns, 0}, {}, {},
             std::to_string(rows) + "x" + std::to_string(columns) + " down");
    list.add("reduce", type, {rows, columns, 1}, {}, {},
             std::to_string(rows) + "x" + std::to_string(columns) + " across");
    list.add("softmax_backward", type, {rows, columns});
    list.add("layer_norm_backward", type, {rows, columns}, {1e-5f});
    list.add("layer_norm_grad", type, {rows, columns});
    list.add("add", type, {rows, columns, 0}, {0.75f, -1.5f});
    list.add("add", type, {rows, columns, 1}, {1.0f, 1.25f});
  }
  list.add("softmax", type, {512, 512, 1});
  list.add("layer_norm_grad", type, {1'024, 512});
  list.add("add", type, {300, 1'024, 1}, {1.0f, 1.0f});
  for (const Dims& dims : {Dims{1, 1, 1, 1}, Dims{1, 7, 1, 1}, Dims{2, 4, 100'000, 100'000}, Dims{3, 2, 20'011, 20'011},
                           Dims{5, 33, 130, 131}, Dims{1'000, 4, 3, 9}, Dims{16, 100, 256, 260},
                           Dims{2, 1'000, 257, 260}, Dims{4, 5, 9, 2}})
    list.add("sum_rows", type, dims, {0.25f});
}

void add_ranking(CaseList& list, ElementType type) {
  for (const std::int64_t n : {1, 257, 4'096, 40'001})
    list.add("weighted_bce", type, {n}, {0.125f}, {{uniform, 8, 0}, {uniform, 0.5f, 0.5f}, {uniform, 1, 1}});
  for (const auto [count, parts] :
       {std::array<std::int64_t, 2>{1, 1}, {5, 9}, {257, 1}, {40'001, 3}, {16'384, 8}, {600'003, 40}})
    list.add("square_sum", type, {count, parts});
  for (const auto [count, width, rows] : {std::array<std::int64_t, 3>{1, 1, 3},
                                          {300, 1, 7},
                                          {100, 33, 61},
                                          {70, 1'000, 64},
                                          {500, 64, 1'000},
                                          {5'000, 12, 65},
                                          {2'000, 40, 3}}) {  // more entries for a row than a block lists
    const OperandContents some{integers, static_cast<float>(rows) + 2};
    const std::string sizes = std::to_string(count) + " to " + std::to_string(rows) + "x" + std::to_string(width);
    list.add("embedding_grad", type, {count, width, rows}, {}, {some}, sizes);
    list.add("embedding_grad", type, {count, width, rows}, {1}, {some, {}, {uniform, 1}}, sizes + " added");
    list.add("embedding_grad", type, {count, width, rows}, {}, {{constant, static_cast<float>(rows - 1)}},
             sizes + " all to one");
  }
}

void add_movers(CaseList& list, ElementType type) {
  for (const auto [count, width, rows] : {std::array<std::int64_t, 3>{1, 1, 3},
                                          {5, 1, 3},
                                          {100, 33, 61},
                                          {40, 1'000, 64},
                                          {3, 20'000, 9},
                                          {70'000, 1, 70'000}}) {
    list.add("gather", type, {count, width, rows}, {}, {{}, {indices}});  // some are outside the table
    list.add("scatter", type, {count, width, rows}, {}, {{}, {indices}, {uniform, 1}});
  }
  for (const std::int64_t n : {1, 255, 40'001, 600'003}) {
    list.add("copy", type, {n});
    list.add("fill", type, {n, 0, 0}, {-3.7f}, {}, std::to_string(n) + " constant");
    list.add("fill", type, {n, 1, 99}, {1000.0f, 0.1f}, {}, std::to_string(n) + " random");
    list.add("fill", type, {n, 1, 99, 12'345}, {1000.0f, 0.1f}, {}, std::to_string(n) + " random, later ones");
  }
  for (const std::int64_t n : {1, 40'001}) list.add("graph_break", type, {n, 1'000});
  for (const Dims& dims : {Dims{1, 1, 1, 1}, Dims{1, 300, 131, 1}, Dims{3, 65, 64, 1}, Dims{2, 1, 5, 3},
                           Dims{2, 128, 12, 64}, Dims{3, 7, 1, 20'000}, Dims{1, 129, 130, 2}, Dims{1, 1'024, 512, 1}})
    list.add("transpose", type, dims);
}

void add_inference(CaseList& list, ElementType type) {
  for (const auto [rows, columns] :
       {std::array<std::int64_t, 2>{1, 1}, {7, 3}, {130, 257}, {5, 32'000}, {20'000, 2}, {3, 100'001}})
    list.add("arg_max", type, {rows, columns});
  for (const auto [rows, columns, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                        {9, 64, 64},
                                        {1'024, 64, 8},
                                        {2'048, 8, 2},
                                        {3, 257, 64},
                                        {1, 260, 64},
                                        {40, 1'000, 8},
                                        {2, 4'097, 40},
                                        {1, 100'000, 64},
                                        {3, 32'000, 1}}) {
    const std::string sizes = std::to_string(rows) + "x" + std::to_string(columns) + "x" + std::to_string(k);
    list.add("top_k", type, {rows, columns, k}, {}, {}, sizes);
    if (rows * columns < 20'000)
      list.add("top_k", type, {rows, columns, k}, {}, {{constant, 1.5f}}, sizes + " all tie");
  }
  for (const auto [sequences, queries, positions, heads, width] : {std::array<std::int64_t, 5>{1, 1, 1, 1, 1},
                                                                   {5, 1, 300, 3, 64},
                                                                   {2, 1, 1'024, 2, 128},
                                                                   {3, 5, 77, 2, 40},
                                                                   {2, 8, 130, 1, 128},
                                                                   {2, 2, 33, 2, 80},
                                                                   {4, 9, 9, 2, 3},
                                                                   {1, 70, 150, 2, 17},
                                                                   {2, 65, 65, 1, 64},
                                                                   {1, 256, 256, 2, 64},
                                                                   {1, 130, 150, 1, 128}}) {
    const Dims dims{sequences, queries, positions, heads_of(heads, width)};
    const auto most = static_cast<float>(positions);
    const std::string sizes = std::to_string(sequences) + "x" + std::to_string(queries) + "x" +
                              std::to_string(positions) + "x" + std::to_string(heads) + "x" + std::to_string(width);
    list.add("attention", type, dims, {}, {{}, {}, {}, {integers, most + 2}}, sizes);
    list.add("attention", type, dims, {}, {{}, {}, {}, {constant, most}}, sizes + " full");
  }
  for (const Dims& dims : {Dims{1, 1, 1, 1}, Dims{7, 3, 10, 33}, Dims{16, 1, 16, 1'024}, Dims{4, 40, 40, 500}}) {
    const auto slots = static_cast<float>(dims[0]), most = static_cast<float>(dims[2]);
    // Slots must be distinct; with a margin they are chosen from two more. Some sequences reach beyond the cache, if
    // there is more than one.
    const OperandContents lengths =
        dims[0] == 1 ? OperandContents{constant, most} : OperandContents{integers, most + 3};
    list.add("cache_write", type, dims, {slots + 2}, {{}, {indices}, lengths, {uniform, 1}});
    list.add("cache_write", type, dims, {slots}, {{}, {constant, -1}, {integers, most + 3}, {uniform, 1}},
             std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + " nowhere");
  }
  for (const Dims& dims : {Dims{1, 1, 1, 1}, Dims{100, 33, 2, 20}, Dims{200, 1'024, 2, 40}, Dims{9, 64, 8, 5}}) {
    list.add("combine", type, dims, {7},
             {{uniform, 1}, {integers, 8}, {integers, static_cast<float>(dims[3]) + 1}, {uniform, 1}});
    // No two tokens share a place, so some find none.
    list.add("dispatch", type, dims, {7}, {{}, {integers, 8}, {indices}, {uniform, 1}});
  }
  const auto patch = [&](Dims dims, std::int64_t channels, std::int64_t side, std::int64_t stride, std::int64_t zeros) {
    dims[3] = image_patch(channels, side, stride, zeros);
    list.add("im2col", type, dims, {}, {{uniform, 1}},
             std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + "x" + std::to_string(dims[2]) + " of " +
                 std::to_string(channels) + " by " + std::to_string(side) + " every " + std::to_string(stride));
  };
  patch({2, 9, 7}, 3, 3, 1, 1);
  patch({1, 28, 28}, 64, 3, 2, 1);
  patch({3, 30, 31}, 3, 7, 2, 3);
  patch({4, 5, 5}, 5, 5, 5, 0);
  for (const Dims& dims : {Dims{2, 9, 7, image_patch(3, 3, 2, 1)}, Dims{1, 28, 28, image_patch(64, 2, 2, 0)},
                           Dims{3, 30, 31, image_patch(5, 7, 3, 3)}})
    list.add("max_pool", type, dims, {}, {{uniform, 1}},
             std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + "x" + std::to_string(dims[2]));
  for (const Dims& dims : {Dims{1, 1, 1, 1}, Dims{5, 17, 33, 3}, Dims{2, 224, 224, 3}, Dims{3, 4, 5, 70}})
    list.add("augment", type, dims, {0.45f, 4.4f}, {{uniform, 1}, {integers, 4}});
}

void add_integers(CaseList& list) {
  constexpr ElementType kType = ElementType::i32;
  for (const std::int64_t n : {1, 255, 40'001})
    list.add("increase", kType, {n, 3}, {}, {{integers, 1'000}}, std::to_string(n) + " by 3");
  for (const auto [sequences, speculated] : {std::array<std::int64_t, 2>{1, 1}, {33, 4}, {5'000, 7}})
    list.add("accept", kType, {sequences, speculated}, {}, {{integers, 2}, {integers, 2}, {integers, 1'000}});
  for (const std::int64_t slots : {1, 255, 20'000})
    list.add("advance", kType, {slots}, {}, {{integers, 3}, {integers, 3}});
  for (const auto [slots, prompts] : {std::array<std::int64_t, 2>{1, 1}, {64, 10}, {1'000, 999}, {600, 2}, {3, 300}})
    list.add("admit", kType, {slots, prompts, 512, 64}, {}, {{integers, 3}, {integers, 9}});
  for (const auto [assignments, experts, picks] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {4'096, 64, 2}, {65'536, 256, 8}, {1'000, 7, 1}, {333, 100, 3}}) {
    const auto most = static_cast<float>(experts);
    const Dims dims{assignments, experts, picks};
    const std::string sizes = std::to_string(assignments) + " to " + std::to_string(experts);
    list.add("route", kType, dims, {}, {{integers, most}}, sizes);
    list.add("route", kType, dims, {}, {{integers, most + 2}}, sizes + " some to none");
    list.add("route", kType, dims, {}, {{constant, most - 1}}, sizes + " all to one");
  }
  list.add("spin", ElementType::f32, {20'000, 5});
  for (const std::int64_t n : {1, 300, 9'001}) {
    list.add("clip", ElementType::f32, {n}, {0.5f}, {{uniform, 2, 2.25f}, {constant, 3}},
             std::to_string(n) + " to a half");
    list.add("clip", ElementType::f32, {n}, {0}, {{uniform, 2, 2.25f}, {constant, 3}}, std::to_string(n) + " to any");
    // The fourth step: in the warm-up, in the middle of a decay, and after it.
    list.add("clip", ElementType::f32, {n, 1, 7, 9}, {0, 2.5f}, {{uniform, 2, 2.25f}, {constant, 3}},
             std::to_string(n) + " warm-up");
    list.add("clip", ElementType::f32, {n, 1, 1, 9}, {0, 2.5f, 0.5f}, {{uniform, 2, 2.25f}, {constant, 3}},
             std::to_string(n) + " linear decay");
    list.add("clip", ElementType::f32, {n, 2, 1, 9}, {0, 2.5f, 0.5f}, {{uniform, 2, 2.25f}, {constant, 3}},
             std::to_string(n) + " cosine decay");
    list.add("clip", ElementType::f32, {n, 2, 1, 3}, {0, 2.5f, 0.5f}, {{uniform, 2, 2.25f}, {constant, 3}},
             std::to_string(n) + " least rate");
  }
}

// A layer of experts: route, group, two products per expert, and the sum of their results.
struct Layer {
  std::int64_t tokens, picks, experts, capacity, width, hidden;
  bool is_crowded = false;  // all tokens pick the same expert
};

Step layer_step(const Layer& layer, ElementType type) {
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

void add_experts(CaseList& list, ElementType type) {
  for (const Layer& layer :
       {Layer{50, 2, 4, 40, 64, 128}, Layer{33, 3, 8, 5, 33, 67},  // full experts drop tokens
        Layer{150, 2, 4, 100, 128, 256}, Layer{100, 2, 3, 200, 40, 136, true}, Layer{7, 1, 16, 4, 72, 24}}) {
    ConformanceCase each;
    each.group = "kernels";
    each.name = "ragged_gemm/" + std::string(name_of(type)) + "/" + std::to_string(layer.tokens) + " tokens, " +
                std::to_string(layer.experts) + " experts of " + std::to_string(layer.width) + "x" +
                std::to_string(layer.hidden);
    each.kernel = "ragged_gemm";
    each.type = type;
    each.needs.results = true;
    each.needs.precision = precision_of(type);
    each.examine = [layer, type](Subject& subject) { return same_as_reference(subject, layer_step(layer, type)); };
    list.add(std::move(each));
  }
}

}  // namespace

Cases kernels() {
  CaseList list;
  for (const ElementType type : kFloats) {
    add_elementwise(list, type);
    add_regions(list, type);
    add_rows(list, type);
    add_ranking(list, type);
    add_inference(list, type);
    add_experts(list, type);
  }
  for (const ElementType type : kAllTypes) add_movers(list, type);
  add_integers(list);
  return list.take();
}

}  // namespace weir::conformance
