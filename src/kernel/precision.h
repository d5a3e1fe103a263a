// Precisions that kernels compute in, and the properties of each. Knows no kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

// The user's choice. Kernels of packages support all but tf32: those are the bits of include/weir/kernel.h. tf32 stores
// f32 and lets matrix units round its operands. In the catalogue fp8 stores bf16, and matrix products round their
// operands (kernel/fp8.h); in packages it is also how elements are stored.
enum class Precision : std::uint8_t { fp64, fp32, fp16, bf16, tf32, fp8_e4m3, fp8_e5m2 };
inline constexpr Precision kCataloguePrecisions[] = {Precision::fp32, Precision::tf32,     Precision::fp16,
                                                     Precision::bf16, Precision::fp8_e4m3, Precision::fp8_e5m2};
constexpr bool is_fp8(Precision precision) {
  return precision == Precision::fp8_e4m3 || precision == Precision::fp8_e5m2;
}

struct PrecisionFacts {
  std::string_view name;
  int bytes;
  double rounding;   // relative error of one operation: half a unit in the last place
  double tolerance;  // largest relative error of a correct result, by default
};
constexpr PrecisionFacts facts_of(Precision precision) {
  constexpr PrecisionFacts kFacts[] = {{"fp64", 8, 0x1p-53, 1e-10},
                                       {"fp32", 4, 0x1p-24, 1e-4},
                                       {"fp16", 2, 0x1p-11, 1e-2},
                                       {"bf16", 2, 0x1p-8, 5e-2},
                                       {"tf32", 4, 0x1p-11, 1e-2},
                                       {"fp8_e4m3", 1, 0x1p-4, 0.125},
                                       {"fp8_e5m2", 1, 0x1p-3, 0.25}};
  return kFacts[static_cast<int>(precision)];
}
constexpr std::string_view name_of(Precision precision) { return facts_of(precision).name; }
constexpr double rounding_of(Precision precision) { return facts_of(precision).rounding; }
// As in include/weir/kernel.h.
constexpr std::uint32_t bit_of(Precision precision) { return 1U << static_cast<unsigned>(precision); }
// For the catalogue's precisions.
constexpr std::optional<Precision> precision_named(std::string_view name) {
  for (const Precision p : kCataloguePrecisions)
    if (name_of(p) == name) return p;
  return std::nullopt;
}

}  // namespace weir
