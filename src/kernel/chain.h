// The operations of the element-wise chain and how a shape packs them. Shared by workloads, the CPU body and device
// code.
#pragma once

#include "kernel/arguments.h"

#if !defined(__CUDACC__) && !defined(__HIPCC__)  // only the host packs a chain
#include <initializer_list>
#endif

namespace weir {

// Each takes its scalars in order from KernelShape::scalars: mul and add one, clamp two (low, high), the others none.
enum class ChainOp : unsigned char { none, mul, add, abs, clamp, relu, square };

inline constexpr int kMaxChainOps = 4;

#if !defined(__CUDACC__) && !defined(__HIPCC__)

constexpr int scalar_count(ChainOp op) {
  return op == ChainOp::clamp ? 2 : op == ChainOp::mul || op == ChainOp::add ? 1 : 0;
}

// Packs operations, applied left to right, into dims[1]. Too many operations or scalars do not compile in a constant
// expression and throw elsewhere.
constexpr long long chain_ops(std::initializer_list<ChainOp> ops) {
  long long packed = 0;
  int shift = 0, scalars = 0;
  for (const ChainOp op : ops) {
    scalars += scalar_count(op);
    if (shift == 8 * kMaxChainOps) throw "a chain has at most 4 operations";
    if (scalars > kMaxScalars) throw "a chain has at most 4 scalars";
    packed |= static_cast<long long>(op) << shift;
    shift += 8;
  }
  return packed;
}

#endif

}  // namespace weir
