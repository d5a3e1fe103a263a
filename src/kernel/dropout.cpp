// Dropout: elements become 0 with a probability, the others are scaled. Which ones follows from the step's number, a
// key and the element's index in the whole of all ranks, so backward and any layout of ranks draw the same without a
// mask.
#include "kernel/body.h"
#include "kernel/random.h"

namespace weir::catalogue {
namespace {

// dims are {rows, columns, stride, first}: element (r, c) is number r * stride + first + c of the whole.
struct Draw {
  explicit Draw(const KernelCall& call)
      : seed(static_cast<std::uint64_t>(static_cast<std::int64_t>(operand<const float>(call, 1)[0])) << 32 |
             static_cast<std::uint32_t>(operand<const std::int32_t>(call, 2)[0])),
        columns(call.shape.dims[1]),
        stride(call.shape.dims[2]),
        first(call.shape.dims[3]),
        least(static_cast<std::uint32_t>(call.shape.scalars[0] * 4294967296.0f)) {}
  bool keeps(std::int64_t index) const { return random_bits(seed, static_cast<std::uint64_t>(index)) >= least; }
  std::uint64_t seed;
  std::int64_t columns, stride, first;
  std::uint32_t least;  // random bits below it drop
};

std::int64_t count_of(const KernelShape& shape) { return shape.dims[0] * shape.dims[1]; }

void run_block(const KernelCall& call, std::uint32_t block) {
  const Draw draw(call);
  const float scale = call.shape.scalars[1];
  const Range range = block_range(count_of(call.shape), kBlockElements, block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const in = operand<const T>(call, 0);
    T* const out = operand<T>(call, 3);
    for (std::int64_t i = range.begin; i < range.end;) {
      const std::int64_t row = i / draw.columns, end = std::min(range.end, (row + 1) * draw.columns);
      const std::int64_t before = row * (draw.stride - draw.columns) + draw.first;
      for (; i < end; ++i) out[i] = from_float<T>(draw.keeps(before + i) ? scale * to_float(in[i]) : 0.0f);
    }
  });
}

void reference(const KernelCall& call) {
  const auto done = static_cast<std::uint64_t>(std::llround(std::trunc(operand<const float>(call, 1)[0])));
  const std::uint64_t seed = (done << 32) + static_cast<std::uint32_t>(operand<const std::int32_t>(call, 2)[0]);
  const double probability = call.shape.scalars[0], scale = call.shape.scalars[1];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t row = 0; row < call.shape.dims[0]; ++row)
      for (std::int64_t column = 0; column < call.shape.dims[1]; ++column) {
        const std::int64_t at = row * call.shape.dims[1] + column;
        const auto index = static_cast<std::uint64_t>(row * call.shape.dims[2] + call.shape.dims[3] + column);
        const bool is_dropped = random_bits(seed, index) < std::floor(probability * 4294967296.0);
        operand<T>(call, 3)[at] =
            from_double<T>(is_dropped ? 0 : scale * static_cast<double>(to_float(operand<const T>(call, 0)[at])));
      }
  });
}

}  // namespace

Kernel dropout() {
  return {.name = "dropout",
          .summary = "elements at random become 0, the others are scaled",
          // input, number of steps done, key, output
          .operands = [](const KernelShape&) -> std::string_view { return "rrrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            return {count_of(shape), 1, 1, count_of(shape)};
          },
          .cost =
              [](const KernelShape& shape) {
                const double count = shape.dim(0) * shape.dim(1);
                return Cost{count, 2 * count * element_bytes(shape) + 8};
              },
          .blocks = [](const KernelShape& shape) { return block_count(count_of(shape), kBlockElements); },
          .run_block = run_block,
          .reference = reference,
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 1); },
          .geometry = [](const KernelShape& shape) { return element_geometry(count_of(shape), shape.type); },
          .types = "tfit"};
}

}  // namespace weir::catalogue
