// Fills a buffer with a constant or with the random values of random.h, bit for bit the same on every device.
#include "kernel/body.h"
#include "kernel/random.h"

namespace weir::catalogue {
namespace {

// Integers are rounded towards zero.
template <class T>
T converted(float value) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<std::int32_t>(value);
  } else {
    return from_float<T>(value);
  }
}

template <class Body>
void with_element_type(ElementType type, Body&& body) {
  if (type == ElementType::i32) return body(static_cast<std::int32_t*>(nullptr));
  with_float_type(type, body);
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const KernelShape& shape = call.shape;
  const Range range = block_range(shape.dims[0], kBlockElements, block);
  with_element_type(shape.type, [&]<class T>(T*) {
    T* const out = operand<T>(call, 0);
    if (shape.dims[1] == 0) {
      std::fill(out + range.begin, out + range.end, converted<T>(shape.scalars[0]));
      return;
    }
    const auto seed = static_cast<unsigned long long>(shape.dims[2]);
    for (std::int64_t i = range.begin; i < range.end; ++i)
      out[i] = converted<T>(
          random_uniform(seed, static_cast<unsigned long long>(shape.dims[3] + i), shape.scalars[0], shape.scalars[1]));
  });
}

// The values are exact by definition, so nothing is accumulated in double: only the loop is written separately.
void reference(const KernelCall& call) {
  const KernelShape& shape = call.shape;
  for (std::int64_t i = 0; i < shape.dims[0]; ++i) {
    const float value = shape.dims[1] == 0
                            ? shape.scalars[0]
                            : shape.scalars[0] * random_unit(static_cast<unsigned long long>(shape.dims[2]),
                                                             static_cast<unsigned long long>(shape.dims[3] + i)) +
                                  shape.scalars[1];
    with_element_type(shape.type, [&]<class T>(T*) { operand<T>(call, 0)[i] = converted<T>(value); });
  }
}

}  // namespace

// dims: count, whether random, seed, and the index of the first value in the seed's sequence.
Kernel fill() {
  return {.name = "fill",
          .summary = "constant or seeded random values",
          .operands = [](const KernelShape&) -> std::string_view { return "w"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0]}; },
          .cost = [](const KernelShape& shape) { return Cost{0, shape.dim(0) * element_bytes(shape)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
          .run_block = run_block,
          .reference = reference,
          .geometry = element_geometry};
}

}  // namespace weir::catalogue
