#include "step/workload/yaml_kernels.h"

namespace weir {
namespace {

using Slot = YamlKernel::Slot;
using Types = YamlKernel::Types;

constexpr Slot flag(std::string_view name, int index, int bit) { return {name, index, true, 0, 0, 1, bit}; }
constexpr Slot scalar(std::string_view name, int index, double initial) { return {name, index, true, initial}; }

constexpr Slot kCount[] = {{"count", 0}};
constexpr Slot kMatrix[] = {{"rows", 0}, {"columns", 1}};
constexpr Slot size(std::string_view name, int index) { return {name, index, false, 0, 1, INT32_MAX}; }
constexpr Slot kGemm[] = {size("m", 0),
                          size("n", 1),
                          size("k", 2),
                          flag("transpose_a", 3, 0),
                          flag("transpose_b", 3, 1),
                          {"batch", 3, true, 0, 1, 1 << 30, 8}};
constexpr Slot kGemmScalars[] = {scalar("alpha", 0, 1), scalar("beta", 1, 0)};
constexpr Slot kNormScalars[] = {scalar("epsilon", 0, 1e-5)};
constexpr Slot kReduce[] = {{"rows", 0}, {"columns", 1}, flag("per_row", 2, 0)};
constexpr Slot kGather[] = {{"count", 0}, {"width", 1}, {"table_rows", 2}};
constexpr Slot kScatter[] = {{"count", 0}, {"width", 1}, {"out_rows", 2}};
constexpr Slot kFill[] = {{"count", 0}, flag("random", 1, 0), {"seed", 2, true, 0, 0, 1 << 20}};
constexpr Slot kFillScalars[] = {scalar("value", 0, 0), scalar("offset", 1, 0)};
constexpr Slot kSpin[] = {{"ns", 0, false, 0, 1, 10'000'000'000}, {"blocks", 1, true, 1, 1, 1 << 20}};

// Packed as in kernel/im2col.h.
constexpr Slot kPatches[] = {{"images", 0},
                             {"height", 1},
                             {"width", 2},
                             {"channels", 3, false, 0, 1, INT32_MAX, 0},
                             {"kernel", 3, false, 0, 1, 255, 32},
                             {"stride", 3, true, 1, 1, 255, 40},
                             {"padding", 3, true, 0, 0, 255, 48}};

constexpr Slot kHold[] = {{"limit_ns", 0, false, 0, 1, 10'000'000'000}};

constexpr std::string_view kInOut[] = {"in", "out"};
constexpr std::string_view kProduct[] = {"a", "b", "c"};
constexpr std::string_view kNorm[] = {"in", "gamma", "beta", "out"};
constexpr std::string_view kBatchNorm[] = {"in", "mean", "variance", "gamma", "beta", "out"};
constexpr std::string_view kIndexed[] = {"in", "index", "out"};
constexpr std::string_view kOut[] = {"out"};
constexpr std::string_view kFlagged[] = {"flag", "moment"};

constexpr YamlKernel kKernels[] = {
    {"gemm", kGemm, kGemmScalars, kProduct, Types::floating, false, false},
    {"chain", kCount, {}, kInOut, Types::floating, true, true},
    {"softmax", kMatrix, {}, kInOut, Types::floating, false, false},
    {"layer_norm", kMatrix, kNormScalars, kNorm, Types::floating, false, false},
    {"batch_norm", kMatrix, kNormScalars, kBatchNorm, Types::floating, false, false},
    {"gelu", kCount, {}, kInOut, Types::floating, true, true},
    {"reduce", kReduce, {}, kInOut, Types::floating, false, false},
    {"gather", kGather, {}, kIndexed, Types::any, false, false},
    {"scatter", kScatter, {}, kIndexed, Types::any, false, false},
    {"copy", kCount, {}, kInOut, Types::any, false, true},
    {"fill", kFill, kFillScalars, kOut, Types::any, false, true},
    {"spin", kSpin, {}, kOut, Types::f32, false, false},
    {"im2col", kPatches, {}, kInOut, Types::any, false, false},
    {"max_pool", kPatches, {}, kInOut, Types::floating, false, false},
    {"hold", kHold, {}, kFlagged, Types::any, false, false},
};

}  // namespace

const YamlKernel* yaml_kernel(std::string_view name) {
  for (const YamlKernel& entry : kKernels)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace weir
