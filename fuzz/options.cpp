// What users type behind flags: counts, assignments, names, fractions.
#include "base/options.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/units.h"

namespace {

template <class Parse>
void try_parse(Parse&& parse) {
  try {
    parse();
  } catch (const weir::Error&) {
    // The one way in which a value may be refused.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_parse([&] {
    for (const int count : weir::parse_counts("--streams", text, 1, 128))
      if (count < 1 || count > 128) __builtin_trap();
  });
  try_parse([&] { weir::parse_assignment("--param", text); });
  try_parse([&] { weir::parse_names("--submit", text); });
  try_parse([&] { weir::parse_fraction(text); });
  const std::string names[] = {"hetero_kernels", "tiny_kernel_stress", "large_gemm_only"};
  if (size < 200) weir::suggestion(text, names);
  return 0;
}
