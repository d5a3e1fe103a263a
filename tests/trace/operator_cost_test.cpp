// Flop and bytes of operators: by hand for shapes that people know, and against loops that count for random ones.
#include "trace/analyse/operator_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weir {
namespace {

OperatorCost cost(std::string_view name, std::string_view shapes) { return operator_cost(name, shapes); }

TEST(OperatorInputs, are_read_as_importers_write_them) {
  const auto in = operator_inputs("bf16 [8, 1024], i64 [], 2 tensors of 96 elements; [1, 1], False, ");
  ASSERT_TRUE(in);
  ASSERT_EQ(in->tensors.size(), 2u);
  EXPECT_EQ(in->tensors[0].type, NumberType::bf16);
  EXPECT_EQ(in->tensors[0].dims, (std::vector<std::uint64_t>{8, 1024}));
  EXPECT_EQ(in->tensors[0].bytes(), 16384);
  EXPECT_TRUE(in->tensors[1].dims.empty());
  EXPECT_EQ(in->tensors[1].elements(), 1);
  EXPECT_EQ(in->values, (std::vector<std::string>{"[1, 1]", "False", ""}));
  EXPECT_TRUE(in->has_lists);
  EXPECT_EQ(operator_inputs("bool [0, 3]")->tensors[0].elements(), 0);
  for (std::size_t i = 0; i < kNumberTypes; ++i)
    EXPECT_EQ(number_type_named(to_string(static_cast<NumberType>(i))), static_cast<NumberType>(i));
}

TEST(OperatorInputs, odd_texts_are_refused) {
  for (const char* odd : {"bf16 [8, 1024", "bf16 8]", "bf16 [8, -1]", "bf16 [x]", "f32 [99999999999999999999]",
                          "f32 )(", "f32 ([2], [3])", "f32 [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "f32 wide"})
    EXPECT_FALSE(operator_inputs(odd)) << odd;
  EXPECT_FALSE(operator_inputs(std::string(100'000, ',')));
  EXPECT_EQ(cost("aten::mm", "bf16 [8").reason, "its shapes cannot be read");
}

TEST(OperatorCost, matrix_products) {
  const OperatorCost mm = cost("aten::mm", "bf16 [8, 1024], bf16 [1024, 4096]");
  EXPECT_EQ(mm.flop, 2.0 * 8 * 1024 * 4096);
  EXPECT_EQ(mm.bytes, 2.0 * (8 * 1024 + 1024 * 4096 + 8 * 4096));
  EXPECT_EQ(mm.type, NumberType::bf16);
  EXPECT_TRUE(mm.is_matrix);
  const OperatorCost addmm = cost("aten::addmm", "f16 [4096], f16 [8, 1024], f16 [1024, 4096], 1, 1");
  EXPECT_EQ(addmm.flop, mm.flop);
  EXPECT_EQ(addmm.bytes, *mm.bytes + 2 * 4096);
  EXPECT_EQ(cost("aten::bmm", "f32 [4, 2, 3], f32 [4, 3, 5]").flop, 2.0 * 4 * 2 * 3 * 5);
  EXPECT_EQ(cost("aten::baddbmm", "f32 [4, 2, 5], f32 [4, 2, 3], f32 [4, 3, 5]").flop, 2.0 * 4 * 2 * 3 * 5);
  const OperatorCost layer = cost("aten::linear", "bf16 [2, 8, 1024], bf16 [4096, 1024], bf16 [4096]");
  EXPECT_EQ(layer.flop, 2.0 * 16 * 1024 * 4096);
  EXPECT_EQ(layer.bytes, 2.0 * (16 * 1024 + 4096 * 1024 + 4096 + 16 * 4096));
  EXPECT_EQ(cost("aten::matmul", "f32 [7, 1, 2, 3], f32 [5, 3, 4]").flop, 2.0 * 7 * 5 * 2 * 3 * 4);
  EXPECT_EQ(cost("aten::mv", "f64 [6, 3], f64 [3]").flop, 2.0 * 6 * 3);
  EXPECT_EQ(cost("aten::dot", "f64 [9], f64 [9]").flop, 18.0);
  EXPECT_EQ(cost("aten::_scaled_mm", "f8 [16, 32], f8 [32, 64], f32 [], f32 []").bytes,
            16.0 * 32 + 32 * 64 + 2 * 16 * 64);
  EXPECT_EQ(cost("aten::_int_mm", "i8 [16, 32], i8 [32, 64]").bytes, 16.0 * 32 + 32 * 64 + 4 * 16 * 64);
  for (const char* odd : {"f32 [2, 3], f32 [4, 5]", "f32 [2, 3]", "f32 [], f32 []", "f32 [2, 2, 3], f32 [3, 3, 5]"}) {
    EXPECT_FALSE(cost("aten::mm", odd).flop) << odd;
    EXPECT_FALSE(cost("aten::mm", odd).reason.empty()) << odd;
  }
}

// Counts multiplications as a convolution in loops makes them; padding is not multiplied by libraries' formulas either
// way, so it counts.
double counted_convolution(int n, int c, int size, int k, int kernel, int stride, int padding, int dilation,
                           int groups) {
  double flop = 0;
  for (int image = 0; image < n; ++image)
    for (int out = 0; out < k; ++out)
      for (int y = -padding; y + dilation * (kernel - 1) < size + padding; y += stride)
        for (int x = -padding; x + dilation * (kernel - 1) < size + padding; x += stride)
          flop += 2.0 * (c / groups) * kernel * kernel;
  return flop;
}

TEST(OperatorCost, convolutions_as_in_loops) {
  std::mt19937_64 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<std::uint64_t>(limit)); };
  for (int round = 0; round < 300; ++round) {
    const int groups = 1 + below(3), c = groups * (1 + below(3)), k = groups * (1 + below(3)), n = 1 + below(3);
    const int kernel = 1 + below(3), stride = 1 + below(3), padding = below(3), dilation = 1 + below(2);
    const int size = dilation * (kernel - 1) + 1 + below(6);
    const double expected = counted_convolution(n, c, size, k, kernel, stride, padding, dilation, groups);
    const std::string tensors =
        fmt::format("f32 [{0}, {1}, {2}, {2}], f32 [{3}, {4}, {5}, {5}]", n, c, size, k, c / groups, kernel);
    const std::string twice = fmt::format("[{0}, {0}], [{1}, {1}], [{2}, {2}]", stride, padding, dilation);
    ASSERT_EQ(cost("aten::convolution", fmt::format("{}; {}, False, [0, 0], {}", tensors, twice, groups)).flop,
              expected);
    ASSERT_EQ(cost("aten::conv2d", fmt::format("{}, f32 [{}], {}, {}", tensors, k, twice, groups)).flop, expected);
    ASSERT_EQ(cost("aten::cudnn_convolution", fmt::format("{}, [{}], [{}], [{}], {}, False, False, True", tensors,
                                                          padding, stride, dilation, groups))
                  .flop,
              expected);
    const int out = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    const std::string backward =
        fmt::format("f32 [{}, {}, {}, {}], {}; {}, False, [0, 0], {}", n, k, out, out, tensors, twice, groups);
    ASSERT_EQ(cost("aten::convolution_backward", backward + ", [True, True, False]").flop, 2 * expected);
    ASSERT_EQ(cost("aten::convolution_backward", backward + ", [False, True, True]").flop, expected);
  }
}

TEST(OperatorCost, convolutions_need_their_settings) {
  const OperatorCost none = cost("aten::convolution", "f32 [1, 3, 8, 8], f32 [4, 3, 3, 3]");
  EXPECT_FALSE(none.flop || none.bytes);
  EXPECT_NE(none.reason.find("stride"), std::string::npos);
  // ResNet's first: 118 Mflop of multiply-adds for one image.
  const OperatorCost first =
      cost("aten::convolution", "f16 [1, 3, 224, 224], f16 [64, 3, 7, 7], , [2, 2], [3, 3], [1, 1], False, [0, 0], 1");
  EXPECT_EQ(first.flop, 2.0 * 118'013'952);
  const OperatorCost up =
      cost("aten::convolution", "f16 [1, 8, 5, 5], f16 [8, 4, 2, 2], , [2, 2], [0, 0], [1, 1], True, [0, 0], 1");
  EXPECT_EQ(up.flop, 2.0 * 8 * 25 * 4 * 4);
  EXPECT_FALSE(up.bytes);
  EXPECT_FALSE(cost("aten::convolution", "f16 [1, 3, 2, 2], f16 [4, 3, 5, 5], , [1], [0], [1], False, [0], 1").flop);
  EXPECT_FALSE(cost("aten::convolution", "f16 [1, 3, 9, 9], f16 [4, 3, 5, 5], , [0], [0], [1], False, [0], 1").flop);
}

TEST(OperatorCost, attention_counts_two_products_and_half_of_them_with_a_causal_mask) {
  const double full = 4.0 * 2 * 16 * 512 * 512 * 64;
  const std::string heads = "bf16 [2, 16, 512, 64], bf16 [2, 16, 512, 64], bf16 [2, 16, 512, 64]";
  EXPECT_EQ(cost("aten::scaled_dot_product_attention", heads + ", , 0., False, , False").flop, full);
  EXPECT_EQ(cost("aten::scaled_dot_product_attention", heads + ", , 0., True, 0.125, False").flop, full / 2);
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention", heads + ", 0., True, False, 0.125").flop, full / 2);
  EXPECT_EQ(cost("aten::_scaled_dot_product_efficient_attention", heads + ", , True, 0., False, ").flop, full);
  EXPECT_EQ(cost("aten::_scaled_dot_product_efficient_attention", heads + ", , False, 0., True, ").flop, full / 2);
  const OperatorCost unsaid = cost("aten::_scaled_dot_product_flash_attention", heads);
  EXPECT_EQ(unsaid.flop, full);
  EXPECT_NE(unsaid.reason.find("causal"), std::string::npos);
  const std::string rows = "bf16 [2, 512, 16, 64], bf16 [2, 512, 16, 64], bf16 [2, 512, 16, 64]";
  const OperatorCost flash = cost("aten::_flash_attention_forward", rows + ", , , 512, 512, 0., True, False, 0.125");
  EXPECT_EQ(flash.flop, full / 2);
  EXPECT_EQ(flash.bytes, 4.0 * 2 * 2 * 16 * 512 * 64);
  EXPECT_EQ(
      cost("aten::_scaled_dot_product_flash_attention_backward",
           "bf16 [2, 16, 512, 64], " + heads + ", bf16 [2, 16, 512, 64], f32 [2, 16, 512], , , 512, 512, 0., True")
          .flop,
      2.5 * full / 2);
  EXPECT_EQ(
      cost("aten::_flash_attention_backward", "bf16 [2, 512, 16, 64], " + rows + ", , , 512, 512, 0., False").flop,
      2.5 * full);
  // Queries of one new token, fewer heads for keys, another size of values.
  EXPECT_EQ(cost("aten::scaled_dot_product_attention",
                 "bf16 [2, 16, 1, 64], bf16 [2, 4, 512, 64], bf16 [2, 4, 512, 32], , 0., False")
                .flop,
            2.0 * 2 * 16 * 512 * (64 + 32));
  const OperatorCost packed =
      cost("aten::_flash_attention_forward", "bf16 [900, 16, 64], bf16 [900, 16, 64], bf16 [900, 16, 64]");
  EXPECT_FALSE(packed.flop);
  EXPECT_NE(packed.reason.find("packed"), std::string::npos);
}

TEST(OperatorCost, what_moves_data) {
  EXPECT_EQ(cost("aten::add", "f32 [8, 1, 4], f32 [5, 4], 1").bytes, 4.0 * (32 + 20 + 160));
  EXPECT_EQ(cost("aten::add", "f32 [8, 1, 4], f32 [5, 4], 1").flop, 160);
  EXPECT_EQ(cost("aten::mul", "bf16 [1000], f64 []").type, NumberType::bf16) << "a Python number decides no type";
  EXPECT_EQ(cost("aten::mul", "bf16 [1000], f32 [1000]").bytes, 2000.0 + 4000 + 4000);
  EXPECT_EQ(cost("aten::add_", "bf16 [1000], f32 [1000], 1").bytes, 2000.0 + 4000 + 2000);
  EXPECT_EQ(cost("aten::eq", "i64 [100], i64 []").bytes, 800.0 + 8 + 100);
  EXPECT_EQ(cost("aten::where", "bool [10], f32 [10], f32 [10]").bytes, 10.0 + 40 + 40 + 40);
  EXPECT_EQ(cost("aten::_softmax", "bf16 [8, 100], -1, False").bytes, 2 * 1600);
  EXPECT_EQ(cost("aten::native_layer_norm", "f16 [8, 100], [100], f16 [100], f16 [100], 1e-05").bytes,
            2 * 1600.0 + 400);
  EXPECT_EQ(cost("aten::sum", "f32 [100, 100], [1], False").bytes, 40'000);
  EXPECT_EQ(cost("aten::max", "f32 [100], f32 [100]").bytes, 1200) << "of two tensors";
  EXPECT_EQ(cost("aten::copy_", "f32 [100], i64 [100], False").bytes, 1200);
  EXPECT_EQ(cost("aten::clone", "f32 [100], 0").bytes, 800);
  EXPECT_EQ(cost("aten::zero_", "f32 [100]").bytes, 400);
  EXPECT_FALSE(cost("aten::cat", "2 tensors of 12 elements").bytes);
  EXPECT_EQ(cost("aten::embedding", "bf16 [50000, 64], i64 [8, 10], -1, False, False").bytes, 640.0 + 2 * 80 * 64 * 2);
  EXPECT_EQ(cost("aten::index_select", "bf16 [50000, 64], 0, i64 [80]").bytes, 640.0 + 2 * 80 * 64 * 2);
  EXPECT_FALSE(cost("aten::index_select", "bf16 [50000, 64], i64 [80]").bytes);
  EXPECT_FALSE(cost("aten::add", "f32 [3], f32 [4]").flop);
}

TEST(OperatorCost, says_why_it_knows_none) {
  EXPECT_NE(cost("aten::mm", "").reason.find("record_shapes"), std::string::npos);
  EXPECT_EQ(cost("my::operator", "f32 [3]").reason, "the cost of this operator is not known");
  EXPECT_EQ(cost("aten::_foreach_add_", "2 tensors of 7 elements, 2 tensors of 7 elements").reason,
            "it works on lists of tensors");
  for (const char* name : {"", "_", "__", "aten::", "aten::_"})
    EXPECT_FALSE(cost(name, "f32 [3]").reason.empty()) << name;
}

// Whatever a trace says, nothing is negative or endless.
TEST(OperatorCost, any_text_has_a_cost_or_a_reason) {
  std::mt19937_64 random(20261119);
  const std::vector<std::string> pieces = {
      "f32 ", "bf16 ", "[",      "]",    "(",     ")",      ", ",        "8", "0", "281474976710656",
      "-1",   " ",     "i64 []", "True", "False", "[1, 1]", "f16 [2, 3]"};
  const std::vector<std::string> names = {"aten::mm",   "aten::convolution",  "aten::_flash_attention_forward",
                                          "aten::add_", "aten::index_select", "aten::convolution_backward",
                                          "aten::cat",  "aten::linear"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint64_t i = random() % 12; i > 0; --i) text += pieces[random() % pieces.size()];
    const OperatorCost made = cost(names[random() % names.size()], text);
    if (made.flop) {
      ASSERT_TRUE(std::isfinite(*made.flop) && *made.flop >= 0) << text;
    }
    if (made.bytes) {
      ASSERT_TRUE(std::isfinite(*made.bytes) && *made.bytes >= 0) << text;
    }
    ASSERT_TRUE((made.flop && made.bytes) || !made.reason.empty()) << text;
  }
}

}  // namespace
}  // namespace weir
