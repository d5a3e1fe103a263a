// The largest value of each channel in every window of an image. Windows are packed as patches are (kernel/im2col.h);
// what is outside of the image does not count.
#include <fmt/format.h>

#include "base/error.h"
#include "kernel/body.h"
#include "kernel/im2col.h"

namespace weir::catalogue {
namespace {

std::int64_t windows_of(const KernelShape& shape) {
  const ImagePatch patch(shape.dims[3]);
  return shape.dims[0] * patch.along(shape.dims[1]) * patch.along(shape.dims[2]);
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [images, height, width, packed] = call.shape.dims;
  const ImagePatch patch(packed);
  const std::int64_t across = patch.along(width), down = patch.along(height);
  const Range range = block_range(windows_of(call.shape), rows_per_block(patch.size()), block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const std::int64_t left = row % across * patch.stride - patch.padding;
      const std::int64_t top = row / across % down * patch.stride - patch.padding;
      const T* const image = operand<const T>(call, 0) + row / (across * down) * height * width * patch.channels;
      T* const out = operand<T>(call, 1) + row * patch.channels;
      bool is_first = true;
      for (std::int64_t y = std::max<std::int64_t>(0, top); y < std::min<std::int64_t>(height, top + patch.kernel); ++y)
        for (std::int64_t x = std::max<std::int64_t>(0, left); x < std::min<std::int64_t>(width, left + patch.kernel);
             ++x) {
          const T* const pixel = image + (y * width + x) * patch.channels;
          for (std::int64_t c = 0; c < patch.channels; ++c)
            if (is_first || to_float(pixel[c]) > to_float(out[c])) out[c] = pixel[c];
          is_first = false;
        }
    }
  });
}

// Element by element, from its place in the result.
void reference(const KernelCall& call) {
  const auto [images, height, width, packed] = call.shape.dims;
  const ImagePatch patch(packed);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    T* out = operand<T>(call, 1);
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t i = 0; i < patch.along(height); ++i)
        for (std::int64_t j = 0; j < patch.along(width); ++j)
          for (std::int64_t channel = 0; channel < patch.channels; ++channel) {
            const T* best = nullptr;
            for (std::int64_t dy = 0; dy < patch.kernel; ++dy)
              for (std::int64_t dx = 0; dx < patch.kernel; ++dx) {
                const std::int64_t y = i * patch.stride + dy - patch.padding, x = j * patch.stride + dx - patch.padding;
                if (y < 0 || y >= height || x < 0 || x >= width) continue;
                const T* const at =
                    operand<const T>(call, 0) + ((image * height + y) * width + x) * patch.channels + channel;
                if (best == nullptr || to_float(*at) > to_float(*best)) best = at;
              }
            *out++ = *best;
          }
  });
}

Extents extents(const KernelShape& shape) {
  const ImagePatch patch(shape.dims[3]);
  const auto [images, height, width, packed] = shape.dims;
  if (std::min(height, width) + 2 * patch.padding < patch.kernel)
    reject(fmt::format("windows of {0} x {0} in images of {1} x {2}", patch.kernel, height, width),
           "Take a smaller kernel or more padding.");
  if (2 * patch.padding > patch.kernel)
    reject(fmt::format("padding of {} around windows of {}: some would be empty", patch.padding, patch.kernel),
           "Take at most half of the kernel.");
  return {images * height * width * patch.channels, windows_of(shape) * patch.channels};
}

}  // namespace

Kernel max_pool() {
  return {.name = "max_pool",
          .summary = "the largest values of an image's windows",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = extents,
          .cost =
              [](const KernelShape& shape) {
                const ImagePatch patch(shape.dims[3]);
                const std::int64_t read = shape.dims[0] * shape.dims[1] * shape.dims[2] * patch.channels;
                const auto compared = static_cast<double>(windows_of(shape) * patch.size());
                return Cost{compared,
                            static_cast<double>(read + windows_of(shape) * patch.channels) * element_bytes(shape)};
              },
          .blocks =
              [](const KernelShape& shape) {
                return block_count(windows_of(shape), rows_per_block(ImagePatch(shape.dims[3]).size()));
              },
          .run_block = run_block,
          .reference = reference,
          .geometry =
              [](const KernelShape& shape) {
                return indexed_geometry(windows_of(shape), ImagePatch(shape.dims[3]).channels);
              }};
}

}  // namespace weir::catalogue
