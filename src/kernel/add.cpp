// Weighted sum of two matrices, or of a matrix and one row that is added to all of its rows (a bias).
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

bool is_broadcast(const KernelShape& shape) { return shape.dims[2] != 0; }
std::int64_t count_of(const KernelShape& shape) { return shape.dims[0] * shape.dims[1]; }

void run_block(const KernelCall& call, std::uint32_t block) {
  const std::int64_t columns = call.shape.dims[1];
  const Range range = block_range(call.shape.dims[0], rows_per_block(columns), block);
  const float a_scale = call.shape.scalars[0], b_scale = call.shape.scalars[1];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      const T* const a = operand<const T>(call, 0) + r * columns;
      const T* const b = operand<const T>(call, 1) + (is_broadcast(call.shape) ? 0 : r * columns);
      T* const out = operand<T>(call, 2) + r * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        out[c] = from_float<T>(a_scale * to_float(a[c]) + b_scale * to_float(b[c]));
    }
  });
}

void reference(const KernelCall& call) {
  const std::int64_t count = count_of(call.shape), period = is_broadcast(call.shape) ? call.shape.dims[1] : count;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double a = to_float(operand<const T>(call, 0)[i]), b = to_float(operand<const T>(call, 1)[i % period]);
      operand<T>(call, 2)[i] = from_double<T>(call.shape.scalars[0] * a + call.shape.scalars[1] * b);
    }
  });
}

}  // namespace

Kernel add() {
  return {.name = "add",
          .summary = "weighted sum of two matrices, or of a matrix and a row",
          .operands = [](const KernelShape&) -> std::string_view { return "rrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const std::int64_t count = count_of(shape);
            return {count, is_broadcast(shape) ? shape.dims[1] : count, count};
          },
          .cost =
              [](const KernelShape& shape) {
                const auto count = static_cast<double>(count_of(shape));
                const double b_count = is_broadcast(shape) ? shape.dim(1) : count;
                return Cost{3 * count, (2 * count + b_count) * element_bytes(shape)};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          // Two products and a sum round once each; the terms may cancel to a 16th of the size of other results.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 3 * 16); },
          .geometry = [](const KernelShape& shape) { return element_geometry(count_of(shape), shape.type); }};
}

}  // namespace weir::catalogue
