// Exchanges the middle two axes of [batch][rows][columns][width]: heads before positions, or a plain matrix. Moves
// bits.
#include <cstring>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// A block is a square of about 16K elements of one matrix, so that reads and writes both stay in the cache.
struct Squares {
  explicit Squares(const KernelShape& shape) {
    while (side > 1 && side * side * shape.dims[3] > kBlockElements) side /= 2;
    down = block_count(shape.dims[1], side);
    across = block_count(shape.dims[2], side);
  }
  std::int64_t side = 128;
  std::uint32_t down = 1, across = 1;
};

std::uint32_t blocks(const KernelShape& shape) {
  const Squares squares(shape);
  return static_cast<std::uint32_t>(shape.dims[0]) * squares.down * squares.across;
}

template <class Bits>
void move_square(const KernelCall& call, std::uint32_t block) {
  const auto [batch, rows, columns, width] = call.shape.dims;
  const Squares squares(call.shape);
  const std::int64_t matrix = block / squares.across / squares.down * rows * columns * width;
  const Range r = block_range(rows, squares.side, block / squares.across % squares.down);
  const Range c = block_range(columns, squares.side, block % squares.across);
  const Bits* const in = operand<const Bits>(call, 0) + matrix;
  Bits* const out = operand<Bits>(call, 1) + matrix;
  for (std::int64_t column = c.begin; column < c.end; ++column)
    for (std::int64_t row = r.begin; row < r.end; ++row)
      std::copy_n(in + (row * columns + column) * width, width, out + (column * rows + row) * width);
}

void run_block(const KernelCall& call, std::uint32_t block) {
  if (size_of(call.shape.type) == 4) return move_square<std::uint32_t>(call, block);
  move_square<std::uint16_t>(call, block);
}

void reference(const KernelCall& call) {
  const auto [batch, rows, columns, width] = call.shape.dims;
  const auto size = static_cast<std::size_t>(width) * size_of(call.shape.type);
  const std::byte* from = operand<const std::byte>(call, 0);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c, from += size)
        std::memcpy(operand<std::byte>(call, 1) + static_cast<std::size_t>((b * columns + c) * rows + r) * size, from,
                    size);
}

// Divided as in transpose.cuh: squares through shared memory, or whole runs of `width` if it is more than 1.
Geometry geometry(const KernelShape& shape) {
  const auto [batch, rows, columns, width] = shape.dims;
  if (width == 1) return {grid_of(batch * divide_up(rows, 64) * divide_up(columns, 64)), kThreads};
  const std::int64_t bytes = width * static_cast<std::int64_t>(size_of(shape.type));
  return indexed_geometry(batch * rows * columns, bytes % 16 == 0 ? bytes / 16 : width);
}

}  // namespace

Kernel transpose() {
  return {.name = "transpose",
          .summary = "exchanges two axes",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [batch, rows, columns, width] = shape.dims;
            return {batch * rows * columns * width, batch * rows * columns * width};
          },
          .cost =
              [](const KernelShape& shape) {
                double count = 1;
                for (const std::int64_t dim : shape.dims) count *= static_cast<double>(dim);
                return Cost{0, 2 * count * element_bytes(shape)};
              },
          .blocks = blocks,
          .run_block = run_block,
          .reference = reference,
          .geometry = geometry};
}

}  // namespace weir::catalogue
