// Matrix products: transposed or not, single and in batches, with and without the previous contents of C, in every
// precision that the device offers.
#include "kernel/gemm.h"

#include <fmt/format.h>

#include "lab/conformance/kernel_case.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

struct Product {
  std::int64_t m, n, k;
  bool transposes_a, transposes_b;
  std::int64_t batch;
  float alpha, beta;
};

ConformanceCase case_of(ElementType type, Precision precision, const Product& product, std::uint64_t margin = 0) {
  const auto [m, n, k, transposes_a, transposes_b, batch, alpha, beta] = product;
  std::string sizes = fmt::format("{}x{}x{} {}{}", m, n, k, transposes_a ? 't' : 'n', transposes_b ? 't' : 'n');
  if (batch > 1) sizes += fmt::format(" batch {}", batch);
  if (beta != 0) sizes += " beta";
  return conformance_case("gemm",
                          {"gemm",
                           {type, precision, {m, n, k, gemm_flags(transposes_a, transposes_b, batch)}, {alpha, beta}},
                           sizes,
                           {},
                           margin});
}

}  // namespace

Cases gemm() {
  Cases cases;
  const auto add = [&](ElementType type, Precision precision) {
    for (const auto [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1}, {131, 67, 129}, {64, 128, 256}}) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          cases.push_back(case_of(type, precision, {m, n, k, ta, tb, 1, 1, 0}));
          cases.push_back(case_of(type, precision, {m, n, k, ta, tb, 1, -0.5f, 1.5f}));
          cases.push_back(case_of(type, precision, {m, n, k, ta, tb, 3, 1, 0}));
          cases.push_back(case_of(type, precision, {m, n, k, ta, tb, 2, -0.5f, 1.5f}));
        }
      }
    }
    cases.push_back(case_of(type, precision, {1, 1'300, 70, false, false, 1, 1, 0}));
    cases.push_back(case_of(type, precision, {300, 1, 37, false, true, 1, 1, 0}));
    cases.push_back(case_of(type, precision, {33, 65, 17, true, false, 1, 1, 0}, 1));
    cases.push_back(case_of(type, precision, {128, 128, 64, false, true, 8, 0.125f, 0}));  // scores of attention
  };
  for (const ElementType type : kFloats) add(type, precision_of(type));
  add(ElementType::f32, Precision::tf32);
  // Only those with a multiple of 16 columns are multiplied in fp8; the others stay in bf16.
  for (const Precision precision : {Precision::fp8_e4m3, Precision::fp8_e5m2}) {
    for (const auto [m, n, k] : {std::array<std::int64_t, 3>{16, 16, 16}, {131, 80, 129}, {64, 128, 256}})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          cases.push_back(case_of(ElementType::bf16, precision, {m, n, k, ta, tb, 1, 1, 0}));
          cases.push_back(case_of(ElementType::bf16, precision, {m, n, k, ta, tb, 2, -0.5f, 1.5f}));
        }
    cases.push_back(case_of(ElementType::bf16, precision, {256, 512, 1'024, false, true, 1, 1, 0}));
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{8}, std::int64_t{67}})
      cases.push_back(case_of(ElementType::bf16, precision, {33, n, 64, false, false, 1, 1, 0}));
  }
  return cases;
}

}  // namespace weir::conformance
