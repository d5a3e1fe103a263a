// Element-wise chain: up to four operations in one pass over the data.
#include "kernel/chain.h"

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

ChainOp op_at(const KernelShape& shape, int position) {
  return static_cast<ChainOp>(shape.dims[1] >> (8 * position) & 0xff);
}

template <class Number>
Number scalar(const KernelShape& shape, int index) {
  return static_cast<Number>(shape.scalars[static_cast<std::size_t>(index % kMaxScalars)]);
}

// One operation over a tile, so that the inner loop has no branch and vectorises. Comparisons are written to preserve
// NaN: poison in an input must not become a plausible output.
void apply(ChainOp op, float first, float second, float* values, std::int64_t count) {
  const auto map = [&](auto&& function) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = function(values[i]);
  };
  switch (op) {
    case ChainOp::mul:
      return map([=](float x) { return x * first; });
    case ChainOp::add:
      return map([=](float x) { return x + first; });
    case ChainOp::abs:
      return map([](float x) { return std::fabs(x); });
    case ChainOp::clamp:
      return map([=](float x) { return x < first ? first : x > second ? second : x; });
    case ChainOp::relu:
      return map([](float x) { return x < 0 ? 0 : x; });
    case ChainOp::square:
      return map([](float x) { return x * x; });
    case ChainOp::none:
      return;
  }
}

std::uint32_t blocks(const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); }

void run_block(const KernelCall& call, std::uint32_t block) {
  const KernelShape& shape = call.shape;
  const Range range = block_range(shape.dims[0], kBlockElements, block);
  with_float_type(shape.type, [&]<class T>(T*) {
    constexpr std::int64_t kTile = 1024;
    float tile[kTile];
    for (std::int64_t begin = range.begin; begin < range.end; begin += kTile) {
      const std::int64_t count = std::min(kTile, range.end - begin);
      load_floats(operand<const T>(call, 0) + begin, tile, count);
      for (int position = 0, next = 0; position < kMaxChainOps; ++position) {
        const ChainOp op = op_at(shape, position);
        apply(op, scalar<float>(shape, next), scalar<float>(shape, next + 1), tile, count);
        next += scalar_count(op);
      }
      store_floats(tile, operand<T>(call, 1) + begin, count);
    }
  });
}

void reference(const KernelCall& call) {
  const KernelShape& shape = call.shape;
  with_float_type(shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < shape.dims[0]; ++i) {
      double x = to_float(operand<const T>(call, 0)[i]);
      int next = 0;
      for (int position = 0; position < kMaxChainOps; ++position) {
        switch (op_at(shape, position)) {
          case ChainOp::none:
            break;
          case ChainOp::mul:
            x *= scalar<double>(shape, next++);
            break;
          case ChainOp::add:
            x += scalar<double>(shape, next++);
            break;
          case ChainOp::abs:
            x = x < 0 ? -x : x;
            break;
          case ChainOp::clamp:
            if (x < scalar<double>(shape, next)) x = scalar<double>(shape, next);
            if (x > scalar<double>(shape, next + 1)) x = scalar<double>(shape, next + 1);
            next += 2;
            break;
          case ChainOp::relu:
            x = x < 0 ? 0 : x;
            break;
          case ChainOp::square:
            x *= x;
            break;
        }
      }
      operand<T>(call, 1)[i] = from_double<T>(x);
    }
  });
}

// Each operation rounds once; squaring doubles the relative error of its input, and an addition may cancel half of its
// operand. The others cannot increase a difference.
double tolerance(const KernelShape& shape) {
  double roundings = 0;
  for (int position = 0; position < kMaxChainOps; ++position) {
    const ChainOp op = op_at(shape, position);
    if (op == ChainOp::square || op == ChainOp::add) roundings *= 2;
    if (op == ChainOp::square || op == ChainOp::add || op == ChainOp::mul) roundings += 1;
  }
  return storage_tolerance(shape.type, 2 * roundings);
}

Cost cost(const KernelShape& shape) {
  int operations = 0;
  for (int position = 0; position < kMaxChainOps; ++position) operations += op_at(shape, position) != ChainOp::none;
  const auto count = shape.dim(0);
  return {count * operations, 2 * count * element_bytes(shape)};
}

// A single operation with one thread per element, which dispatch benchmarks launch by the thousand. In a chain of
// dependent kernels the general body costs 0.13 us more each (H200, 2026-11-15).
std::string_view lean_body(const KernelShape& shape) {
  if (shape.dims[0] > kOnePerThread) return {};
  switch (shape.dims[1]) {
    case chain_ops({ChainOp::mul}):
      return "chain_mul";
    case chain_ops({ChainOp::add}):
      return "chain_add";
    case chain_ops({ChainOp::abs}):
      return "chain_abs";
    case chain_ops({ChainOp::clamp}):
      return "chain_clamp";
    default:
      return {};
  }
}

}  // namespace

Kernel chain() {
  return {.name = "chain",
          .summary = "element-wise chain of up to four operations",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0]}; },
          .cost = cost,
          .blocks = blocks,
          .run_block = run_block,
          .reference = reference,
          .tolerance = tolerance,
          .geometry = element_geometry,
          .lean_body = lean_body};
}

}  // namespace weir::catalogue
