// What kind of work a kernel does, by its name: a matrix product, attention, a reduction. Knows no file format.
#pragma once

#include <cstdint>
#include <string_view>

#include "measure/timeline.h"

namespace weir {

enum class WorkClass : std::uint8_t {
  matrix,
  attention,
  convolution,
  normalisation,
  softmax,    // and losses
  embedding,  // and other gathering and scattering by index
  element_wise,
  reduction,
  pooling,
  sorting,      // and scans, selections, histograms
  rearranging,  // by kernels: copies, casts, transposes, concatenations
  random,
  optimizer,
  communication,
  copy,
  memset,
  unrecognised,
};
inline constexpr std::size_t kWorkClasses = static_cast<std::size_t>(WorkClass::unrecognised) + 1;

const char* to_string(WorkClass work) noexcept;
WorkClass work_class_of(SpanKind kind, std::string_view name);

}  // namespace weir
