// Adds up the experts' outputs for a token with the weights of its picks. A slot outside of an expert's capacity
// contributes nothing: that token was dropped.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [tokens, width, picks, capacity] = call.shape.dims;
  const auto experts = static_cast<std::int64_t>(call.shape.scalars[0]);
  const Range range = block_range(tokens, rows_per_block(width * std::max<std::int64_t>(1, picks)), block);
  float* const sums = scratch(width);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      std::fill(sums, sums + width, 0.0f);
      for (std::int64_t pick = t * picks; pick < (t + 1) * picks; ++pick) {
        const std::int64_t id = operand<const std::int32_t>(call, 1)[pick];
        const std::int64_t slot = operand<const std::int32_t>(call, 2)[pick];
        if (id < 0 || id >= experts || slot < 0 || slot >= capacity) continue;
        const float weight = to_float(operand<const T>(call, 3)[pick]);
        const T* const row = operand<const T>(call, 0) + (id * capacity + slot) * width;
        for (std::int64_t c = 0; c < width; ++c) sums[c] += weight * to_float(row[c]);
      }
      store_floats(sums, operand<T>(call, 4) + t * width, width);
    }
  });
}

void reference(const KernelCall& call) {
  const auto [tokens, width, picks, capacity] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t element = 0; element < tokens * width; ++element) {
      double sum = 0;
      for (std::int64_t j = 0; j < picks; ++j) {
        const std::int64_t pick = element / width * picks + j;
        const std::int64_t slot = operand<const std::int32_t>(call, 2)[pick];
        const std::int64_t row = operand<const std::int32_t>(call, 1)[pick] * capacity + slot;
        const bool is_inside = 0 <= slot && slot < capacity && 0 <= row &&
                               row < static_cast<std::int64_t>(call.shape.scalars[0]) * capacity;
        if (is_inside)
          sum += static_cast<double>(to_float(operand<const T>(call, 3)[pick])) *
                 to_float(operand<const T>(call, 0)[row * width + element % width]);
      }
      operand<T>(call, 4)[element] = from_double<T>(sum);
    }
  });
}

}  // namespace

Kernel combine() {
  return {.name = "combine",
          .summary = "weighted sum of what each token's experts made of it",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [tokens, width, picks, capacity] = shape.dims;
            const auto experts = static_cast<std::int64_t>(shape.scalars[0]);
            return {experts * capacity * width, tokens * picks, tokens * picks, tokens * picks, tokens * width};
          },
          // As if no token were dropped.
          .cost =
              [](const KernelShape& shape) {
                const auto tokens = shape.dim(0), width = shape.dim(1);
                const auto picks = shape.dim(2);
                return Cost{2 * tokens * width * picks,
                            tokens * (width * (picks + 1) + picks) * element_bytes(shape) + 8 * tokens * picks};
              },
          .blocks =
              [](const KernelShape& shape) {
                return block_count(shape.dims[0],
                                   rows_per_block(shape.dims[1] * std::max<std::int64_t>(1, shape.dims[2])));
              },
          .run_block = run_block,
          .reference = reference,
          // A product and an addition round once each per pick.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 2 * shape.dim(2)); },
          .geometry =
              [](const KernelShape& shape) {
                const auto per_thread = static_cast<std::int64_t>(16 / size_of(shape.type));
                return indexed_geometry(shape.dims[0], divide_up(shape.dims[1], per_thread));
              },
          .types = "tiitt"};
}

}  // namespace weir::catalogue
