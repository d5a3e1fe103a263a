#include "kernel/difference.h"

#include <algorithm>
#include <cmath>

namespace weir {

Difference compare_elements(ElementType type, std::span<const std::byte> got, std::span<const std::byte> expected,
                            double natural) {
  Difference worst;
  const std::uint64_t count = got.size() / size_of(type);
  if (type == ElementType::i32) {
    const auto* a = reinterpret_cast<const std::int32_t*>(got.data());
    const auto* b = reinterpret_cast<const std::int32_t*>(expected.data());
    for (std::uint64_t i = 0; i < count; ++i)
      if (a[i] != b[i]) return {HUGE_VAL, i, static_cast<double>(a[i]), static_cast<double>(b[i])};
    return worst;
  }
  with_float_type(type, [&]<class T>(T*) {
    const T* a = reinterpret_cast<const T*>(got.data());
    const T* b = reinterpret_cast<const T*>(expected.data());
    double squares = 0;
    std::uint64_t finite = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const double value = to_float(b[i]);
      if (!std::isfinite(value)) continue;
      squares += value * value;
      ++finite;
    }
    // Below this, the steps between numbers no longer shrink: gradients of deep stacks get there.
    const double smallest = type == ElementType::f16 ? 0x1p-14 : 0x1p-126;
    const double scale = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
    for (std::uint64_t i = 0; i < count; ++i) {
      const double x = to_float(a[i]);
      const double y = to_float(b[i]);
      // Elements that are never written keep their poison on both sides.
      if (std::isnan(y) ? std::isnan(x) : x == y) continue;
      double error = std::fabs(x - y) / std::max({std::fabs(y), scale, natural, smallest});
      if (std::isnan(error)) error = HUGE_VAL;
      if (error > worst.error) worst = {error, i, x, y};
    }
  });
  return worst;
}

}  // namespace weir
