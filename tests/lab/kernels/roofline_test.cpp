#include "lab/kernels/roofline.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/error.h"

namespace weir::testing {
namespace {

using bench::Ceilings;
using bench::roofline;
using package::Work;

// 100 GB/s and 1 Tflop/s: the ridge is at 10 flop per byte.
Ceilings plain() {
  Ceilings ceilings;
  ceilings.device = "cuda:0";
  ceilings.bandwidth = {100e9, "copy"};
  ceilings.compute[Precision::fp32] = {1e12, "gemm"};
  ceilings.compute[Precision::fp64] = {std::nullopt, "no fp64 kernel"};
  return ceilings;
}

Work work(std::optional<double> flop, std::optional<double> bytes) {
  return {.flop = flop, .bytes = bytes, .items = {}, .item_name = {}};
}

TEST(BenchRoofline, below_the_ridge_memory_bounds_and_above_it_arithmetic) {
  const Ceilings ceilings = plain();
  const Json thin = roofline(work(1e9, 1e9), Precision::fp32, 0.02, &ceilings);
  EXPECT_EQ(thin["bound"], "memory");
  EXPECT_NEAR(thin["of_ceiling"].get<double>(), 0.5, 1e-12);
  EXPECT_NEAR(thin["intensity"].get<double>(), 1, 1e-12);
  EXPECT_NEAR(thin["bytes_per_s"].get<double>(), 50e9, 1);
  const Json dense = roofline(work(100e9, 1e9), Precision::fp32, 0.4, &ceilings);
  EXPECT_EQ(dense["bound"], "compute");
  EXPECT_NEAR(dense["of_ceiling"].get<double>(), 0.25, 1e-12);
  EXPECT_TRUE(dense["reason"].is_null());
}

TEST(BenchRoofline, what_is_beyond_the_ceiling_is_said_not_cut) {
  const Ceilings ceilings = plain();
  const Json cached = roofline(work(1e9, 1e9), Precision::fp32, 0.005, &ceilings);
  EXPECT_NEAR(cached["of_ceiling"].get<double>(), 2, 1e-12);
  EXPECT_TRUE(cached["is_beyond"].get<bool>());
  EXPECT_NE(cached["reason"].get<std::string>().find("caches"), std::string::npos);
}

TEST(BenchRoofline, what_is_beyond_a_ceiling_is_not_bound_by_it) {
  const Ceilings ceilings = plain();
  // 1 GB in `seconds` against 100 GB/s, and 2.5 Gflop against 1 Tflop/s: of memory 1/100s, of compute 1/400s.
  for (const auto& [flop, seconds, bound] :
       std::initializer_list<std::tuple<double, double, Json>>{{2.5e9, 0.00254, nullptr},  // 393 % of the bandwidth
                                                               {2.5e9, 0.0092, nullptr},   // 109 %
                                                               {2.5e9, 0.0097, "memory"},  // 103 %: noise
                                                               {2.5e9, 0.02, "memory"},    // 50 %
                                                               {40e9, 0.02, nullptr},  // 200 % of the compute ceiling
                                                               {40e9, 0.0388, "compute"},  // 103 % of it
                                                               {40e9, 0.005, nullptr}}) {  // beyond both
    const Json found = roofline(work(flop, 1e9), Precision::fp32, seconds, &ceilings);
    EXPECT_EQ(found["bound"], bound) << flop << " in " << seconds << found;
    if (bound.is_null()) {
      EXPECT_NE(found["reason"].get<std::string>().find("does not bound"), std::string::npos) << found;
    }
    EXPECT_GT(found["of_ceiling"].get<double>(), 0) << found;
  }
  const Json cached = roofline(work(2.5e9, 1e9), Precision::fp32, 0.00254, &ceilings);
  EXPECT_NE(cached["reason"].get<std::string>().find("394 % of the bandwidth"), std::string::npos) << cached;
}

TEST(BenchRoofline, claims_no_bound_with_one_side_alone) {
  const Ceilings ceilings = plain();
  const Json bytes = roofline(work({}, 1e9), Precision::fp32, 0.02, &ceilings);
  EXPECT_TRUE(bytes["bound"].is_null());
  EXPECT_NEAR(bytes["of_ceiling"].get<double>(), 0.5, 1e-12);
  EXPECT_EQ(bytes["of"], "bandwidth");
  EXPECT_NE(bytes["reason"].get<std::string>().find("flop"), std::string::npos);
  const Json other = roofline(work(1e9, 1e9), Precision::fp64, 0.02, &ceilings);
  EXPECT_TRUE(other["bound"].is_null());
  EXPECT_NE(other["reason"].get<std::string>().find("no fp64 kernel"), std::string::npos);
}

TEST(BenchRoofline, has_null_and_reasons_where_nothing_is_known) {
  const Json none = roofline(work({}, {}), Precision::fp32, 0.02, nullptr);
  for (const char* field : {"flop", "bytes", "intensity", "bound", "of_ceiling", "bytes_per_s", "flop_per_s"})
    EXPECT_TRUE(none[field].is_null()) << field;
  EXPECT_FALSE(none["reason"].is_null());
  EXPECT_TRUE(roofline(work(1, 1), Precision::fp32, 0, nullptr)["flop_per_s"].is_null());
}

TEST(BenchCeilings, come_back_from_their_document) {
  const Ceilings before = plain();
  const Ceilings after = bench::ceilings_from(bench::ceilings_document(before));
  EXPECT_EQ(after.device, "cuda:0");
  EXPECT_EQ(after.bandwidth.value, before.bandwidth.value);
  EXPECT_EQ(after.compute.at(Precision::fp32).how, "gemm");
  EXPECT_FALSE(after.compute.at(Precision::fp64).value);
  EXPECT_THROW(bench::ceilings_from(Json("no")), Error);
}

TEST(BenchCeilings, of_this_cpu_have_values_or_reasons) {
  const Ceilings ceilings = bench::cpu_ceilings(1);
  EXPECT_GT(ceilings.bandwidth.value.value_or(0), 1e8);
  EXPECT_GT(ceilings.compute.at(Precision::fp32).value.value_or(0), 1e8);
  for (const auto& [precision, ceiling] : ceilings.compute) EXPECT_FALSE(ceiling.how.empty());
}

}  // namespace
}  // namespace weir::testing
