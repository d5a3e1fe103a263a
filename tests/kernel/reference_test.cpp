// The references themselves, against results of numpy and scipy (reference/make_values.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/launch.h"
#include "kernel/reference/values.h"

namespace weir {
namespace {

void load(Launch& launch, std::size_t i, std::span<const std::uint32_t> bits) {
  ASSERT_EQ(launch.count(i), bits.size());
  const std::size_t element = launch.size_bytes(i) / bits.size();
  for (std::size_t e = 0; e < bits.size(); ++e) {
    const auto low = static_cast<std::uint16_t>(bits[e]);
    std::memcpy(launch.bytes(i) + e * element, element == 2 ? static_cast<const void*>(&low) : &bits[e], element);
  }
}

// Bit patterns of floats of one sign are ordered as the floats are: their difference counts units in the last place.
std::int64_t distance(std::uint32_t a, std::uint32_t b) {
  return std::abs(static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b));
}

void expect(Launch& launch, std::size_t i, std::span<const std::uint32_t> result) {
  ASSERT_EQ(result.size(), launch.count(i));
  const std::size_t element = launch.size_bytes(i) / result.size();
  for (std::size_t e = 0; e < result.size(); ++e) {
    std::uint32_t bits = 0;
    std::uint16_t narrow = 0;
    std::memcpy(element == 2 ? static_cast<void*>(&narrow) : &bits, launch.bytes(i) + e * element, element);
    // One unit: another libm may end on the other side of a tie. Bits that are only moved or hashed must be equal.
    const std::int64_t allowed = launch.body().tolerance(launch.call().shape) == 0 ? 0 : 1;
    EXPECT_LE(distance(element == 2 ? narrow : bits, result[e]), allowed) << "operand " << i << ", element " << e;
  }
}

TEST(Reference, AgreesWithNumpy) {
  for (const values::Case& known : values::kCases) {
    SCOPED_TRACE(std::string(known.kernel) + ' ' + std::string(name_of(known.type)));
    Launch launch(known.kernel, {.type = known.type, .dims = known.dims, .scalars = known.scalars});
    for (std::size_t i = 0; i < known.operands.size(); ++i) load(launch, i, known.operands[i]);
    launch.body().reference(launch.call());
    ASSERT_EQ(known.results.size(), launch.outputs().size());
    for (std::size_t i = 0; i < known.results.size(); ++i) expect(launch, launch.outputs()[i], known.results[i]);
  }
}

// Worked out by hand in inference_test.cpp, optimizer_test.cpp and region_test.cpp: numpy has none of them, or only
// moves what they move.
constexpr std::string_view kByHand[] = {
    "accept",      "adamw",       "admit",   "advance",  "arg_max",    "attention",      "augment",     "batch_norm",
    "cache_write", "clip",        "combine", "dispatch", "dropout",    "embedding_grad", "im2col",      "increase",
    "max_pool",    "ragged_gemm", "region",  "route",    "square_sum", "top_k",          "weighted_bce"};

TEST(Reference, CoversEveryKernel) {
  for (const Kernel& each : kernels()) {
    if (each.is_probe) continue;  // writes down moments
    bool is_covered = std::find(std::begin(kByHand), std::end(kByHand), each.name) != std::end(kByHand);
    for (const values::Case& known : values::kCases) is_covered = is_covered || known.kernel == each.name;
    EXPECT_TRUE(is_covered) << each.name;
  }
}

}  // namespace
}  // namespace weir
