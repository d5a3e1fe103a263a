// The patches of images as rows of a matrix, so that a convolution becomes a matrix product. Moves bits; positions
// outside of an image are zero.
#include "kernel/im2col.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

std::int64_t rows_of(const KernelShape& shape) {
  const ImagePatch patch(shape.dims[3]);
  return shape.dims[0] * patch.along(shape.dims[1]) * patch.along(shape.dims[2]);
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [images, height, width, packed] = call.shape.dims;
  const ImagePatch patch(packed);
  const auto pixel_bytes = static_cast<std::size_t>(patch.channels) * size_of(call.shape.type);
  const Range range = block_range(rows_of(call.shape), rows_per_block(patch.size()), block);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t across = patch.along(width), down = patch.along(height);
    const std::int64_t left = row % across * patch.stride - patch.padding;
    const std::int64_t top = row / across % down * patch.stride - patch.padding;
    const std::int64_t image = row / (across * down);
    std::byte* to =
        operand<std::byte>(call, 1) + static_cast<std::size_t>(row * patch.kernel * patch.kernel) * pixel_bytes;
    for (std::int64_t y = top; y < top + patch.kernel; ++y)
      for (std::int64_t x = left; x < left + patch.kernel; ++x, to += pixel_bytes) {
        if (y < 0 || y >= height || x < 0 || x >= width) {
          std::memset(to, 0, pixel_bytes);
        } else {
          const auto pixel = static_cast<std::size_t>((image * height + y) * width + x);
          std::memcpy(to, operand<const std::byte>(call, 0) + pixel * pixel_bytes, pixel_bytes);
        }
      }
  }
}

// Element by element, from its place in the matrix to its place in the image.
void reference(const KernelCall& call) {
  with_bits(call.shape.type, [&]<class Bits>(Bits*) {
    const auto [images, height, width, packed] = call.shape.dims;
    const ImagePatch patch(packed);
    Bits* out = operand<Bits>(call, 1);
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t i = 0; i < patch.along(height); ++i)
        for (std::int64_t j = 0; j < patch.along(width); ++j)
          for (std::int64_t dy = 0; dy < patch.kernel; ++dy)
            for (std::int64_t dx = 0; dx < patch.kernel; ++dx)
              for (std::int64_t channel = 0; channel < patch.channels; ++channel) {
                const std::int64_t y = i * patch.stride + dy - patch.padding, x = j * patch.stride + dx - patch.padding;
                const bool is_inside = 0 <= y && y < height && 0 <= x && x < width;
                const std::int64_t at = ((image * height + y) * width + x) * patch.channels + channel;
                *out++ = is_inside ? operand<const Bits>(call, 0)[at] : Bits{0};
              }
  });
}

Extents extents(const KernelShape& shape) {
  const ImagePatch patch(shape.dims[3]);
  const auto [images, height, width, packed] = shape.dims;
  if (std::min(height, width) + 2 * patch.padding < patch.kernel)
    reject(fmt::format("patches of {0} x {0} in images of {1} x {2}", patch.kernel, height, width),
           "Take a smaller kernel or more padding.");
  const double positions = static_cast<double>(patch.along(height)) * static_cast<double>(patch.along(width));
  if (static_cast<double>(images) * positions * static_cast<double>(patch.size()) > 0x1p62)
    reject("more patches than can be counted", "Take smaller or fewer images.");
  return {images * height * width * patch.channels, rows_of(shape) * patch.size()};
}

}  // namespace

Kernel im2col() {
  return {.name = "im2col",
          .summary = "patches of images as rows of a matrix",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = extents,
          .cost =
              [](const KernelShape& shape) {
                const ImagePatch patch(shape.dims[3]);
                const std::int64_t read = shape.dims[0] * shape.dims[1] * shape.dims[2] * patch.channels;
                return Cost{0, static_cast<double>(read + rows_of(shape) * patch.size()) * element_bytes(shape)};
              },
          .blocks =
              [](const KernelShape& shape) {
                return block_count(rows_of(shape), rows_per_block(ImagePatch(shape.dims[3]).size()));
              },
          .run_block = run_block,
          .reference = reference,
          .geometry =
              [](const KernelShape& shape) {
                const auto wide = static_cast<std::int64_t>(16 / size_of(shape.type));
                const ImagePatch patch(shape.dims[3]);
                return indexed_geometry(rows_of(shape),
                                        patch.channels % wide == 0 ? patch.size() / wide : patch.size());
              }};
}

}  // namespace weir::catalogue
