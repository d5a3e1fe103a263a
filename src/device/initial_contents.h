// Gives a device buffer its initial contents, bit for bit as initialise() does, while copying as little as possible.
// Knows no vendor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step/step.h"

namespace weir {

// The arguments of a launch, without its operands.
template <class Arguments>
Arguments arguments_of(const KernelShape& shape) {
  Arguments arguments{};
  std::copy(shape.dims.begin(), shape.dims.end(), arguments.dims);
  std::copy(shape.scalars.begin(), shape.scalars.end(), arguments.scalars);
  return arguments;
}

// `launch_fill(shape, geometry, offset_bytes)` launches the kernel `fill` on a part of the buffer, `repeat(element)`
// sets all elements to the same bytes, and `write(bytes)` copies and returns when it no longer needs them.
// `fills_parts`: launches are cheap, so a buffer of many slices may use one launch per slice.
template <class LaunchFill, class Repeat, class Write>
void initialise_on_device(const Buffer& buffer, bool fills_parts, LaunchFill&& launch_fill, Repeat&& repeat,
                          Write&& write) {
  if (buffer.init == Init::uniform && buffer.type != ElementType::i32 &&
      (fills_parts || buffer.slice.length(buffer.count) == buffer.count)) {
    const Kernel& fill = kernel(kernel_named("fill"));
    for (std::uint64_t at = 0, length = 0; at < buffer.count; at += length) {
      length = buffer.slice.length(buffer.count - at);
      const KernelShape shape{.type = buffer.type,
                              .dims = {static_cast<std::int64_t>(length), 1, static_cast<std::int64_t>(buffer.seed),
                                       static_cast<std::int64_t>(buffer.slice[at])},
                              .scalars = {buffer.scale, buffer.offset}};
      launch_fill(shape, fill.geometry(shape), at * size_of(buffer.type));
    }
    return;
  }
  // initialise() alone defines initial contents and writes the rest: one element if all are equal.
  const bool is_alike = buffer.init == Init::constant || buffer.init == Init::poison;
  Buffer pattern = buffer;
  if (is_alike) pattern.count = 1;
  std::vector<std::byte> bytes(pattern.size_bytes());
  initialise(pattern, bytes);
  if (is_alike) return repeat(std::span<const std::byte>(bytes));
  write(std::span<const std::byte>(bytes));
}

}  // namespace weir
