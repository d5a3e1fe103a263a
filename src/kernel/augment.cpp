// Images shifted by a mean and scaled; mirrored left to right if the lowest bit of the image's flip is set.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [images, height, width, channels] = call.shape.dims;
  const auto [mean, scale, unused0, unused1] = call.shape.scalars;
  const Range range = block_range(images * height, rows_per_block(width * channels), block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const bool is_mirrored = (operand<const std::int32_t>(call, 1)[row / height] & 1) != 0;
      for (std::int64_t x = 0; x < width; ++x) {
        const T* const from = operand<const T>(call, 0) + (row * width + (is_mirrored ? width - 1 - x : x)) * channels;
        T* const to = operand<T>(call, 2) + (row * width + x) * channels;
        for (std::int64_t c = 0; c < channels; ++c) to[c] = from_float<T>((to_float(from[c]) - mean) * scale);
      }
    }
  });
}

void reference(const KernelCall& call) {
  const auto [images, height, width, channels] = call.shape.dims;
  const double mean = call.shape.scalars[0], scale = call.shape.scalars[1];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t element = 0; element < images * height * width * channels; ++element) {
      const std::int64_t channel = element % channels, x = element / channels % width;
      const std::int64_t row = element / (channels * width);
      const std::int64_t from = operand<const std::int32_t>(call, 1)[row / height] % 2 == 0 ? x : width - 1 - x;
      const double value = to_float(operand<const T>(call, 0)[(row * width + from) * channels + channel]);
      operand<T>(call, 2)[element] = from_double<T>((value - mean) * scale);
    }
  });
}

}  // namespace

Kernel augment() {
  return {.name = "augment",
          .summary = "images normalised and some of them mirrored",
          .operands = [](const KernelShape&) -> std::string_view { return "rrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [images, height, width, channels] = shape.dims;
            const std::int64_t count = images * height * width * channels;
            return {count, images, count};
          },
          .cost =
              [](const KernelShape& shape) {
                const auto images = shape.dim(0);
                const double count = images * static_cast<double>(shape.dims[1] * shape.dims[2] * shape.dims[3]);
                return Cost{2 * count, 2 * count * element_bytes(shape) + 4 * images};
              },
          .blocks =
              [](const KernelShape& shape) {
                return block_count(shape.dims[0] * shape.dims[1], rows_per_block(shape.dims[2] * shape.dims[3]));
              },
          .run_block = run_block,
          .reference = reference,
          // A subtraction and a multiplication round once each, before the last rounding.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 2); },
          .geometry =
              [](const KernelShape& shape) {
                return indexed_geometry(shape.dims[0] * shape.dims[1], shape.dims[2] * shape.dims[3]);
              },
          .types = "tit"};
}

}  // namespace weir::catalogue
