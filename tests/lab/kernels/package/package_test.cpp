#include "lab/kernels/package/package.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "weir/kernel.h"

namespace weir::package {
namespace {

TEST(Package, words_are_parsed_and_named) {
  for (const Backend backend : kBackends) EXPECT_EQ(parse_backend(name_of(backend)), backend);
  for (const Precision precision : kPrecisions) EXPECT_EQ(parse_precision(name_of(precision)), precision);
  EXPECT_EQ(parse_backend("CPU"), std::nullopt);
  EXPECT_EQ(parse_precision("fp4"), std::nullopt);
  EXPECT_EQ(parse_precision(""), std::nullopt);
  EXPECT_EQ(name_of(Form::executable), "executable");
}

TEST(Package, bits_are_those_of_the_header) {
  EXPECT_EQ(bit_of(Backend::cpu), WEIR_CPU);
  EXPECT_EQ(bit_of(Backend::cuda), WEIR_CUDA);
  EXPECT_EQ(bit_of(Backend::hip), WEIR_HIP);
  EXPECT_EQ(bit_of(Backend::opencl), WEIR_OPENCL);
  EXPECT_EQ(bit_of(Precision::fp64), WEIR_FP64);
  EXPECT_EQ(bit_of(Precision::fp32), WEIR_FP32);
  EXPECT_EQ(bit_of(Precision::fp16), WEIR_FP16);
  EXPECT_EQ(bit_of(Precision::bf16), WEIR_BF16);
  EXPECT_EQ(bit_of(Precision::fp8_e4m3), WEIR_FP8_E4M3);
  EXPECT_EQ(bit_of(Precision::fp8_e5m2), WEIR_FP8_E5M2);
  std::uint32_t all = 0;
  for (const Precision precision : kPrecisions) all |= bit_of(precision);
  EXPECT_EQ(kPrecisionBits, all);
  EXPECT_EQ(parse_precision("fp8"), Precision::fp8_e4m3);
  EXPECT_EQ(parse_backend("rocm"), Backend::hip);
  EXPECT_EQ(parse_precision("tf32"), std::nullopt);
}

TEST(Package, problems_are_named_as_people_write_them) {
  EXPECT_EQ(text_of(Problem{}), "");
  EXPECT_EQ(text_of(Problem{{"rows", {1024}}, {"grid", {64, 64, 32}}}), "rows=1024,grid=64x64x32");
  EXPECT_EQ(text_of(Problem{{"n", {1048576}}, {"e", {1e-5}}, {"z", {-0.0}}, {"h", {0.5}}}),
            "n=1048576,e=1e-05,z=0,h=0.5");
}

TEST(Package, different_problems_have_different_names) {
  EXPECT_NE(text_of(Problem{{"e", {0.1}}}), text_of(Problem{{"e", {0.1 + 1e-16}}}));
  EXPECT_NE(text_of(Problem{{"n", {1e15}}}), text_of(Problem{{"n", {1e15 + 1}}}));
}

TEST(Package, a_case_has_a_key) {
  Case wanted{Backend::cuda, Precision::fp16, {{"rows", {1024}}}, 7};
  EXPECT_EQ(wanted.key("softmax"), "softmax/cuda/fp16/rows=1024");
  wanted.problem.clear();
  EXPECT_EQ(wanted.key("softmax"), "softmax/cuda/fp16");
}

TEST(Package, sweeps_combine_in_the_order_of_the_file_the_last_fastest) {
  const auto problems = problems_of({{"a", {{1}, {2}}}, {"g", {{8, 8}, {16, 16}}}});
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(text_of(problems[0]), "a=1,g=8x8");
  EXPECT_EQ(text_of(problems[1]), "a=1,g=16x16");
  EXPECT_EQ(text_of(problems[2]), "a=2,g=8x8");
  EXPECT_EQ(text_of(problems[3]), "a=2,g=16x16");
}

TEST(Package, without_a_sweep_there_is_one_problem_of_defaults) {
  const auto problems = problems_of({});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].empty());
}

TEST(Package, too_many_combinations_are_refused_before_they_are_made) {
  std::vector<std::vector<double>> values;
  for (int i = 0; i < 101; ++i) values.push_back({static_cast<double>(i)});
  EXPECT_EQ(problems_of({{"a", values}, {"b", {values.begin(), values.begin() + 99}}}).size(), 9999U);
  EXPECT_THROW(problems_of({{"a", values}, {"b", values}}), Error);
  // Enough to overflow 64 bits.
  EXPECT_THROW(problems_of(std::vector<Sweep>(40, Sweep{"a", values})), Error);
}

TEST(Package, parts_say_which_backends_there_can_be) {
  Package package;
  EXPECT_TRUE(package.backends().empty());
  package.parts = {{Form::opencl_source, "kernel.cl"}, {Form::host_source, "kernel.cpp"}};
  EXPECT_EQ(package.backends(), (std::vector{Backend::cpu, Backend::opencl}));
  ASSERT_NE(package.find(Form::host_source), nullptr);
  EXPECT_EQ(package.find(Form::host_source)->file, "kernel.cpp");
  EXPECT_EQ(package.find(Form::library), nullptr);
  package.parts = {{Form::executable, "kernel.py"}};
  EXPECT_EQ(package.backends().size(), 4U);
}

}  // namespace
}  // namespace weir::package
