// Kernels for inference, routing and images: cases worked out by hand, then every type and odd sizes at random, with
// blocks in any order, against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/attention.h"
#include "kernel/im2col.h"
#include "kernel/kernel.h"
#include "kernel/ragged_gemm.h"
#include "kernel/random.h"

namespace weir {
namespace {

constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPoison = -7777;  // what an integer output holds before anybody writes it

using Values = std::vector<double>;

// A launch whose operands are given as numbers. Storage is exactly the extents, so that a sanitizer sees a body that
// goes past them.
class Trial {
 public:
  Trial(std::string_view name, const KernelShape& shape) : kernel_(&kernel(kernel_named(name))), shape_(shape) {
    const auto extents = kernel_->extents(shape);
    const std::string_view modes = kernel_->operands(shape);
    for (std::size_t i = 0; i < modes.size(); ++i) {
      counts_.push_back(static_cast<std::size_t>(extents[i]));
      storage_.push_back(std::make_unique<std::byte[]>(bytes_of(i)));
      for (std::size_t e = 0; e < counts_[i]; ++e) set(i, e, type(i) == ElementType::i32 ? kPoison : kNan);
    }
  }
  Trial(const Trial& other) : Trial(other.kernel_->name, other.shape_) {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      std::memcpy(storage_[i].get(), other.storage_[i].get(), bytes_of(i));
  }

  ElementType type(std::size_t i) const { return kernel_->type_of(shape_, i); }
  std::size_t count(std::size_t i) const { return counts_[i]; }
  std::size_t bytes_of(std::size_t i) const { return counts_[i] * size_of(type(i)); }
  double get(std::size_t i, std::size_t e) const {
    if (type(i) == ElementType::i32) return reinterpret_cast<const std::int32_t*>(storage_[i].get())[e];
    return with_float_type(
        type(i), [&]<class T>(T*) -> double { return to_float(reinterpret_cast<const T*>(storage_[i].get())[e]); });
  }
  void set(std::size_t i, std::size_t e, double value) {
    if (type(i) == ElementType::i32) {
      reinterpret_cast<std::int32_t*>(storage_[i].get())[e] = static_cast<std::int32_t>(value);
      return;
    }
    with_float_type(type(i), [&]<class T>(T*) {
      reinterpret_cast<T*>(storage_[i].get())[e] = from_float<T>(static_cast<float>(value));
    });
  }
  Trial& give(std::size_t i, const Values& values) {
    EXPECT_EQ(values.size(), counts_[i]) << "operand " << i;
    for (std::size_t e = 0; e < std::min(values.size(), counts_[i]); ++e) set(i, e, values[e]);
    return *this;
  }
  Trial& uniform(std::size_t i, unsigned seed, float scale = 1, float offset = 0) {
    for (std::size_t e = 0; e < counts_[i]; ++e) set(i, e, random_uniform(seed, e, scale, offset));
    return *this;
  }
  // begin..end-1 at random.
  Trial& integers(std::size_t i, unsigned seed, int begin, int end) {
    for (std::size_t e = 0; e < counts_[i]; ++e)
      set(i, e, begin + static_cast<int>(random_bits(seed, e) % static_cast<unsigned>(end - begin)));
    return *this;
  }
  Values values(std::size_t i) const {
    Values all;
    for (std::size_t e = 0; e < counts_[i]; ++e) all.push_back(get(i, e));
    return all;
  }
  bool has_same(std::size_t i, const Trial& other) const {
    return std::memcmp(storage_[i].get(), other.storage_[i].get(), bytes_of(i)) == 0;
  }

  void run(unsigned seed) {
    const KernelCall launch = call();
    std::vector<std::uint32_t> order(kernel_->blocks(shape_));
    for (std::uint32_t b = 0; b < order.size(); ++b) order[b] = b;
    for (std::size_t b = order.size(); b > 1; --b) std::swap(order[b - 1], order[random_bits(seed, b) % b]);
    for (const std::uint32_t block : order) kernel_->run_block(launch, block);
  }
  void refer() { kernel_->reference(call()); }

  // The body and the reference agree in every operand: integers and bits that are only moved exactly.
  void expect_agreement(unsigned seed = 1) const {
    Trial ours(*this), theirs(*this);
    ours.run(seed);
    theirs.refer();
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      const bool is_exact = type(i) == ElementType::i32 || kernel_->tolerance(shape_) == 0;
      if (is_exact || kernel_->operands(shape_)[i] == 'r') {
        EXPECT_TRUE(ours.has_same(i, theirs)) << text() << ", operand " << i;
      } else {
        EXPECT_LE(ours.error_against(theirs, i), kernel_->tolerance(shape_)) << text() << ", operand " << i;
      }
    }
  }
  // Both compute `expected`, bit for bit.
  void expect_result(std::size_t i, const Values& expected) const {
    Trial ours(*this), theirs(*this), right(*this);
    right.give(i, expected);
    ours.run(1);
    theirs.refer();
    EXPECT_TRUE(ours.has_same(i, right)) << text() << ": body: " << testing::PrintToString(ours.values(i));
    EXPECT_TRUE(theirs.has_same(i, right)) << text() << ": reference: " << testing::PrintToString(theirs.values(i));
  }

 private:
  KernelCall call() const {
    KernelCall call{shape_, {}};
    for (std::size_t i = 0; i < storage_.size(); ++i) call.operands[i] = storage_[i].get();
    return call;
  }
  std::string text() const {
    std::string text = std::string(kernel_->name) + ' ' + std::string(name_of(shape_.type));
    for (const std::int64_t dim : shape_.dims) text += ' ' + std::to_string(dim);
    return text;
  }
  // As run/check measures it: relative to the larger of |reference| and its root mean square.
  double error_against(const Trial& reference, std::size_t i) const {
    double squares = 0, finite = 0, worst = 0;
    for (std::size_t e = 0; e < counts_[i]; ++e) {
      if (!std::isfinite(reference.get(i, e))) continue;
      squares += std::pow(reference.get(i, e), 2);
      finite += 1;
    }
    const double rms = finite == 0 ? 0 : std::sqrt(squares / finite);
    for (std::size_t e = 0; e < counts_[i]; ++e) {
      const double ours = get(i, e), theirs = reference.get(i, e);
      if (std::isnan(theirs) ? std::isnan(ours) : ours == theirs) continue;
      const double error = std::fabs(ours - theirs) / std::max(std::fabs(theirs), rms);
      if (!(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error;
    }
    return worst;
  }

  const Kernel* kernel_;
  KernelShape shape_;
  std::vector<std::size_t> counts_;
  std::vector<std::unique_ptr<std::byte[]>> storage_;
};

using Dims = std::array<std::int64_t, kMaxDims>;
using Scalars = std::array<float, kMaxScalars>;

Trial of(std::string_view name, ElementType type, Dims dims, Scalars scalars = {}) {
  return Trial(name, {.type = type, .dims = dims, .scalars = scalars});
}
Trial integers_of(std::string_view name, Dims dims) { return of(name, ElementType::i32, dims); }

TEST(ArgMax, LowestIndexOfTheLargest) {
  for (const ElementType type : kFloats) {
    of("arg_max", type, {4, 3}).give(0, {1, 3, 3, -1, -2, -1, 0, 0, 0, -3, -2, 5}).expect_result(1, {1, 0, 0, 2});
    // NaN is below -inf; zeros of both signs are equal.
    of("arg_max", type, {4, 3})
        .give(0, {kNan, -HUGE_VAL, kNan, kNan, kNan, kNan, -0.0, 0.0, -0.0, HUGE_VAL, 1, HUGE_VAL})
        .expect_result(1, {1, 0, 0, 0});
    of("arg_max", type, {2, 1}).give(0, {-1, kNan}).expect_result(1, {0, 0});
  }
}

TEST(ArgMax, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto [rows, columns] :
         {std::array<std::int64_t, 2>{1, 1}, {7, 3}, {130, 257}, {5, 32000}, {20000, 1}, {3, 16385}})
      of("arg_max", type, {rows, columns}).uniform(0, 3).expect_agreement();
}

TEST(TopK, LargestFirstLowestIndexFirst) {
  for (const ElementType type : kFloats) {
    Trial picks = of("top_k", type, {2, 5, 3}).give(0, {1, 4, 4, 0, 4, kNan, -1, kNan, -2, kNan});
    picks.expect_result(1, {4, 4, 4, -1, -2, kNan});
    picks.expect_result(2, {1, 2, 4, 1, 3, 0});
    Trial zeros = of("top_k", type, {1, 4, 4}).give(0, {-0.0, 0.0, -HUGE_VAL, 0.0});
    zeros.expect_result(2, {0, 1, 3, 2});
    zeros.expect_result(1, {-0.0, 0.0, 0.0, -HUGE_VAL});  // bits as they are
  }
}

TEST(TopK, AtRandom) {
  for (const ElementType type : kFloats) {
    for (const auto [rows, columns, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                          {9, 64, 64},
                                          {200, 8, 2},
                                          {3, 257, 5},
                                          {1, 100'000, 64},
                                          {40, 1000, 8}}) {
      of("top_k", type, {rows, columns, k}).uniform(0, 4).expect_agreement();
      of("top_k", type, {rows, columns, k}).integers(0, 5, 0, 4).expect_agreement();  // mostly ties
    }
    Trial holes = of("top_k", type, {50, 70, 33});
    holes.uniform(0, 6);
    for (std::size_t e = 0; e < holes.count(0); e += 2) holes.set(0, e, kNan);
    holes.expect_agreement();
    Trial rising = of("top_k", type, {1, 3000, 64});
    for (std::size_t e = 0; e < 3000; ++e) rising.set(0, e, static_cast<double>(e));
    rising.expect_agreement();
  }
}

TEST(TopK, RejectsWhatDoesNotFit) {
  for (const Dims dims : {Dims{1, 100, 65}, Dims{1, 3, 4}, Dims{1, 3, 0}})
    EXPECT_THROW(of("top_k", ElementType::f32, dims), Error);
}

TEST(Attention, ByHand) {
  for (const ElementType type : kFloats) {
    // Equal scores: the mean of the values seen. Two queries see 2 and 3 of 4 positions; the second sequence is idle.
    Trial means = of("attention", type, {2, 2, 4, heads_of(1, 2)});
    means.give(0, {0, 0, 0, 0, 1, 1, 1, 1}).uniform(1, 7).give(3, {3, 0});
    means.give(2, {2, 4, 4, 8, 6, 0, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan});
    means.expect_result(4, {3, 6, 4, 4, 0, 0, 0, 0});

    // One key far ahead of the others takes all the weight; the other head looks elsewhere.
    Trial peaks = of("attention", type, {1, 1, 3, heads_of(2, 1)});
    peaks.give(0, {1, 1}).give(1, {0, 200, 200, 0, 0, 0}).give(2, {1, 2, 3, 4, 5, 6}).give(3, {3});
    peaks.expect_result(4, {3, 2});

    // More queries than positions are filled: the first sees nothing. A length beyond the cache means all of it.
    Trial early = of("attention", type, {2, 2, 2, heads_of(1, 1)});
    early.give(0, {0, 0, 0, 0}).give(1, {1, 1, 1, 1}).give(2, {2, 8, 2, 8}).give(3, {1, 100});
    early.expect_result(4, {0, 2, 2, 5});
    Trial negative = of("attention", type, {1, 1, 2, heads_of(1, 1)});
    negative.give(0, {0}).give(1, {1, 1}).give(2, {2, 8}).give(3, {-5});
    negative.expect_result(4, {0});
  }
  // Scores are divided by the root of the head's width: weights 1 : 4 of exp(0) and exp(log 4).
  Trial scaled = of("attention", ElementType::f32, {1, 1, 2, heads_of(1, 4)});
  const double score = 2 * std::log(4.0);
  scaled.give(0, {score, 0, 0, 0}).give(1, {0, 0, 0, 0, 1, 0, 0, 0}).give(2, {0, 1, 0, 5, 10, 1, 0, 0}).give(3, {2});
  scaled.run(1);
  const Values expected = {8, 1, 0, 1};
  for (std::size_t e = 0; e < 4; ++e) EXPECT_NEAR(scaled.get(4, e), expected[e], 1e-5);
}

TEST(Attention, AtRandom) {
  struct Size {
    std::int64_t sequences, queries, positions, heads, head_dim;
  };
  for (const ElementType type : kFloats)
    for (const Size& size :
         {Size{1, 1, 1, 1, 1}, Size{5, 1, 300, 3, 64}, Size{3, 5, 77, 2, 40}, Size{2, 8, 130, 1, 128},
          Size{2, 130, 150, 2, 17}, Size{1, 65, 65, 1, 64}, Size{4, 9, 9, 2, 3}}) {
      Trial trial =
          of("attention", type, {size.sequences, size.queries, size.positions, heads_of(size.heads, size.head_dim)});
      trial.uniform(0, 1, 2, 0.25f).uniform(1, 2, 2, 0.25f).uniform(2, 3, 2, 0.25f);
      trial.integers(3, 4, 0, static_cast<int>(size.positions) + 2).expect_agreement();
      for (std::size_t s = 0; s < trial.count(3); ++s) trial.set(3, s, static_cast<double>(size.positions));
      trial.expect_agreement(2);
    }
}

TEST(Attention, RejectsWideHeads) {
  EXPECT_THROW(of("attention", ElementType::f32, {1, 1, 1, heads_of(1, 129)}), Error);
}

TEST(Attention, CostOfFullSequences) {
  const Kernel& attention = kernel(kernel_named("attention"));
  EXPECT_EQ(attention.cost({.dims = {1, 2, 3, heads_of(1, 4)}}).flop, 4 * 4 * (2 + 3));
  EXPECT_EQ(attention.cost({.dims = {1, 2, 3, heads_of(1, 4)}}).bytes, 4 * (2 * 2 * 4 + 2 * 3 * 4) + 4);
}

TEST(CacheWrite, ByHand) {
  for (const ElementType type : kFloats) {
    // 4 sequences of 2 fresh rows of 1; 3 slots of 3 positions. The second hangs over the front, the third has no
    // slot, the fourth's is not there.
    Trial trial = of("cache_write", type, {4, 2, 3, 1}, {3});
    trial.give(0, {1, 2, 3, 4, 5, 6, 7, 8}).give(1, {2, 0, -1, 3}).give(2, {3, 1, 2, 2});
    trial.expect_result(3, {4, kNan, kNan, kNan, kNan, kNan, kNan, 1, 2});
    // Past the end of a slot: only what still fits.
    Trial over = of("cache_write", type, {1, 2, 3, 1}, {1});
    over.give(0, {1, 2}).give(1, {0}).give(2, {4}).expect_result(3, {kNan, kNan, 1});
  }
}

TEST(CacheWrite, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto [sequences, queries, positions, width] :
         {Dims{1, 1, 1, 1}, Dims{7, 3, 10, 33}, Dims{16, 1, 64, 1024}, Dims{4, 40, 40, 500}}) {
      Trial trial = of("cache_write", type, {sequences, queries, positions, width}, {static_cast<float>(sequences)});
      trial.uniform(0, 1).uniform(3, 2).integers(2, 3, -1, static_cast<int>(positions) + 3);
      for (std::size_t s = 0; s < trial.count(1); ++s)
        trial.set(1, s, s % 4 == 3 ? -1.0 : static_cast<double>(trial.count(1) - 1 - s));
      trial.expect_agreement();
    }
}

TEST(Accept, ByHand) {
  // All agree, none, the first of two, and a match after a mismatch that must not count.
  Trial trial = integers_of("accept", {4, 2});
  trial.give(0, {5, 6, 5, 6, 5, 6, 5, 6}).give(1, {5, 6, 7, 1, 6, 9, 5, 8, 3, 4, 6, 2}).give(2, {10, 20, 0, 7});
  trial.expect_result(3, {13, 21, 2, 8});
  trial.expect_result(4, {7, 1, 8, 4});
  trial.expect_result(5, {3, 1, 2, 1});
}

TEST(Accept, AtRandom) {
  for (const auto [sequences, speculated] : {std::array<std::int64_t, 2>{1, 1}, {33, 4}, {5000, 7}})
    integers_of("accept", {sequences, speculated})
        .integers(0, 1, 0, 2)
        .integers(1, 2, 0, 2)
        .integers(2, 3, 0, 1000)
        .expect_agreement();
}

TEST(Advance, ByHand) {
  Trial trial = integers_of("advance", {5});
  trial.give(0, {10, 10, 0, 4, -1}).give(1, {3, 1, 0, 0, 5});
  trial.expect_result(2, {11, 0, 0, 0, 0});
  trial.expect_result(3, {2, 0, 0, 0, 0});
  trial.expect_result(4, {1, 1, 0, 0, 0});
}

TEST(Advance, AtRandom) {
  for (const std::int64_t slots : {1, 255, 20000})
    integers_of("advance", {slots}).integers(0, 1, -1, 4).integers(1, 2, -1, 4).expect_agreement();
}

TEST(Admit, ByHand) {
  Trial room = integers_of("admit", {5, 2, 100, 7});
  room.give(0, {3, 0, 9, 0, 0}).give(1, {1, 0, 2, 0, 0});
  room.expect_result(2, {3, 101, 9, 101, 0});
  room.expect_result(3, {1, 7, 2, 7, 0});
  room.expect_result(4, {1, 3});
  Trial full = integers_of("admit", {3, 2, 10, 5});
  full.give(0, {1, 0, 1}).give(1, {4, 0, 4});
  full.expect_result(2, {1, 11, 1});
  full.expect_result(4, {1, -1});
}

TEST(Admit, AtRandom) {
  for (const auto [slots, prompts] : {std::array<std::int64_t, 2>{1, 1}, {64, 10}, {1000, 999}, {600, 2}, {3, 300}})
    integers_of("admit", {slots, prompts, 512, 64}).integers(0, 1, 0, 3).integers(1, 2, 0, 9).expect_agreement();
}

TEST(Route, ByHand) {
  // 3 tokens with 2 picks each of 4 experts; nobody picks expert 2.
  Trial trial = integers_of("route", {6, 4, 2}).give(0, {1, 0, 1, 3, 0, 1});
  trial.expect_result(1, {0, 2, 5, 5, 6});
  trial.expect_result(2, {0, 0, 1, 0, 1, 2});
  trial.expect_result(3, {0, 2, 0, 1, 2, 1});
  // What is no expert is skipped.
  Trial strays = integers_of("route", {4, 2, 1}).give(0, {5, 1, -1, 1});
  strays.expect_result(1, {0, 0, 2});
  strays.expect_result(2, {-1, 0, -1, 1});
  strays.expect_result(3, {1, 3, kPoison, kPoison});
}

TEST(Route, AtRandom) {
  for (const auto [assignments, experts, picks] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {4096, 64, 2}, {65536, 256, 8}, {1000, 7, 1}, {333, 100, 3}}) {
    integers_of("route", {assignments, experts, picks}).integers(0, 1, 0, static_cast<int>(experts)).expect_agreement();
    integers_of("route", {assignments, experts, picks})
        .integers(0, 2, -2, static_cast<int>(experts) + 2)
        .expect_agreement();
    Trial one = integers_of("route", {assignments, experts, picks});  // one expert has all tokens
    one.integers(0, 3, static_cast<int>(experts) - 1, static_cast<int>(experts)).expect_agreement();
  }
  EXPECT_THROW(integers_of("route", {8, 257, 1}), Error);
}

TEST(RaggedGemm, Packing) {
  constexpr std::int64_t kPacked = ragged_expert(7, 300, true, false);
  static_assert(expert_in(kPacked) == 7 && experts_in(kPacked) == 300);
  static_assert(is_grouped_in(kPacked) && !has_gelu_in(kPacked));
  static_assert(has_gelu_in(ragged_expert(0, 1, false, true)) && !is_grouped_in(ragged_expert(0, 1, false, true)));
}

TEST(RaggedGemm, ByHand) {
  for (const ElementType type : kFloats) {
    // Expert 1 of 3 has rows 1 and 2 of the grouped ones; capacity 3, so the last row stays.
    Trial grouped = of("ragged_gemm", type, {3, 2, 2, ragged_expert(1, 3, true, false)}, {2, 4});
    grouped.give(0, {9, 9, 1, 2, 3, 4, 9, 9}).give(1, {1, 0, 2, 1}).give(2, {0, 1, 3, 4});
    grouped.expect_result(3, {5, 2, 11, 4, kNan, kNan});
    // The same rows where the expert has a buffer of its own.
    Trial own = of("ragged_gemm", type, {3, 2, 2, ragged_expert(1, 3, false, false)}, {2});
    own.give(0, {1, 2, 3, 4, 9, 9}).give(1, {1, 0, 2, 1}).give(2, {0, 1, 3, 4});
    own.expect_result(3, {5, 2, 11, 4, kNan, kNan});
    // More rows than fit are dropped; an expert without rows writes nothing.
    Trial crowded = of("ragged_gemm", type, {1, 1, 1, ragged_expert(0, 2, true, false)}, {3, 3});
    crowded.give(0, {2, 3, 4}).give(1, {10}).give(2, {0, 3, 3}).expect_result(3, {20});
    Trial empty = of("ragged_gemm", type, {1, 1, 1, ragged_expert(1, 2, true, false)}, {3, 3});
    empty.give(0, {2, 3, 4}).give(1, {10}).give(2, {0, 3, 3}).expect_result(3, {kNan});
    // Offsets beyond the rows of A must not be followed.
    Trial beyond = of("ragged_gemm", type, {2, 1, 1, ragged_expert(0, 1, true, false)}, {2, 3});
    beyond.give(0, {2, 3, 4}).give(1, {10}).give(2, {2, 9}).expect_result(3, {40, kNan});
    // gelu(100) is 100, gelu(-100) is 0, gelu(0) is 0.
    Trial gelu = of("ragged_gemm", type, {3, 1, 1, ragged_expert(0, 1, false, true)}, {3});
    gelu.give(0, {100, -100, 0}).give(1, {1}).give(2, {0, 3}).expect_result(3, {100, -0.0, 0});
  }
}

TEST(RaggedGemm, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto [capacity, n, k] : {
             std::array<std::int64_t, 3>{1, 1, 1},
             {65, 129, 33},
             {40, 64, 1100},
#if !defined(__SANITIZE_ADDRESS__)  // with which these take two minutes
             {300, 1030, 70},
             {600, 500, 300},
#endif
         })
      for (const bool is_grouped : {false, true})
        for (const bool has_gelu : {false, true})
          for (const std::int64_t rows : {std::int64_t{0}, capacity / 2, capacity, capacity + 9}) {
            const std::int64_t all = capacity + 20;
            Trial trial = of("ragged_gemm", type, {capacity, n, k, ragged_expert(1, 3, is_grouped, has_gelu)},
                             {static_cast<float>(rows), static_cast<float>(all)});
            trial.uniform(0, 1, 1, 0.1f).uniform(1, 2, 1, 0.1f).uniform(3, 3);
            trial.give(2, {0, 7, static_cast<double>(7 + rows), static_cast<double>(all)}).expect_agreement();
          }
}

TEST(RaggedGemm, CostIsWhatIsExpected) {
  const Kernel& gemm = kernel(kernel_named("ragged_gemm"));
  const Cost cost =
      gemm.cost({.type = ElementType::f16, .dims = {100, 3, 5, ragged_expert(0, 1, false, false)}, .scalars = {2.5f}});
  EXPECT_EQ(cost.flop, 2 * 2.5 * 3 * 5);
}

TEST(Combine, ByHand) {
  for (const ElementType type : kFloats) {
    // 2 experts with 2 rows of 2; the second token's first pick was dropped, and its second's slot is not there.
    Trial trial = of("combine", type, {2, 2, 2, 2}, {2});
    trial.give(0, {1, 2, 3, 4, 5, 6, 7, 8}).give(1, {0, 1, 1, 0}).give(2, {1, 0, -1, 2}).give(3, {0.5, 2, 1, 1});
    trial.expect_result(4, {11.5, 14, 0, 0});
    Trial stray = of("combine", type, {1, 1, 2, 1}, {2});  // experts -1 and 2 are none
    stray.give(0, {1, 2}).give(1, {-1, 2}).give(2, {0, 0}).give(3, {1, 1}).expect_result(4, {0});
  }
}

TEST(Combine, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto [tokens, width, picks, capacity] :
         {Dims{1, 1, 1, 1}, Dims{100, 33, 2, 20}, Dims{50, 1000, 3, 10}, Dims{9, 64, 8, 5}}) {
      Trial trial = of("combine", type, {tokens, width, picks, capacity}, {7});
      trial.uniform(0, 1).integers(1, 2, 0, 7).integers(2, 3, -1, static_cast<int>(capacity) + 1).uniform(3, 4);
      trial.expect_agreement();
    }
}

TEST(Dispatch, ByHand) {
  for (const ElementType type : kFloats) {
    // 2 tokens with 2 picks each go to 2 experts with room for 2; the last pick has no slot, and one row stays as it
    // was.
    Trial trial = of("dispatch", type, {2, 2, 2, 2}, {2});
    trial.give(0, {1, 2, 3, 4}).give(1, {0, 1, 1, 0}).give(2, {0, 1, 0, 2});
    trial.expect_result(3, {1, 2, kNan, kNan, 3, 4, 1, 2});
    Trial stray = of("dispatch", type, {1, 1, 2, 1}, {2});  // experts -1 and 2 are none
    stray.give(0, {5}).give(1, {-1, 2}).give(2, {0, 0}).expect_result(3, {kNan, kNan});
  }
}

TEST(Dispatch, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto& [tokens, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {33, 257}, {100, 20000}}) {
      // Every assignment has a row of its own, as route gives them.
      Trial trial = of("dispatch", type, {tokens, width, 2, tokens}, {2});
      trial.uniform(0, 1);
      for (std::size_t a = 0; a < trial.count(1); ++a) {
        trial.set(1, a, static_cast<double>(a % 2));
        trial.set(2, a, static_cast<double>(trial.count(1) / 2 - 1 - a / 2));
      }
      trial.expect_agreement();
    }
}

TEST(Increase, AddsToEveryElement) {
  of("increase", ElementType::i32, {3, 5}).give(0, {-5, 0, 7}).expect_result(1, {0, 5, 12});
  of("increase", ElementType::i32, {2, -1}).give(0, {0, 1}).expect_result(1, {-1, 0});
  of("increase", ElementType::i32, {40001, 3}).integers(0, 1, -1000, 1000).expect_agreement();
}

TEST(Im2col, ByHand) {
  for (const ElementType type : kFloats) {
    Trial plain = of("im2col", type, {1, 2, 3, image_patch(1, 2, 1, 0)}).give(0, {1, 2, 3, 4, 5, 6});
    plain.expect_result(1, {1, 2, 4, 5, 2, 3, 5, 6});
    Trial padded = of("im2col", type, {1, 1, 2, image_patch(2, 3, 2, 1)}).give(0, {1, 2, 3, 4});
    padded.expect_result(1, {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0});
    Trial strided = of("im2col", type, {2, 3, 3, image_patch(1, 1, 2, 0)});
    strided.give(0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19});
    strided.expect_result(1, {1, 3, 7, 9, 11, 13, 17, 19});
  }
}

TEST(Im2col, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto& [size, patch] : {std::pair{std::array<std::int64_t, 3>{2, 9, 7}, image_patch(3, 3, 1, 1)},
                                      std::pair{std::array<std::int64_t, 3>{1, 56, 56}, image_patch(64, 3, 2, 1)},
                                      std::pair{std::array<std::int64_t, 3>{3, 30, 31}, image_patch(3, 7, 2, 3)},
                                      std::pair{std::array<std::int64_t, 3>{4, 5, 5}, image_patch(5, 5, 5, 0)}})
      of("im2col", type, {size[0], size[1], size[2], patch}).uniform(0, 1).expect_agreement();
}

TEST(MaxPool, ByHand) {
  for (const ElementType type : kFloats) {
    Trial plain = of("max_pool", type, {1, 2, 4, image_patch(1, 2, 2, 0)}).give(0, {1, -2, -3, -4, 5, 6, -7, -1});
    plain.expect_result(1, {6, -1});
    // Around an image there is nothing, not zeros.
    Trial padded = of("max_pool", type, {1, 1, 2, image_patch(2, 3, 2, 1)}).give(0, {-1, -2, -3, 4});
    padded.expect_result(1, {-1, 4});
    Trial strided = of("max_pool", type, {2, 3, 3, image_patch(1, 2, 1, 0)});
    strided.give(0, {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7, -8, -9});
    strided.expect_result(1, {5, 6, 8, 9, -1, -2, -4, -5});
  }
  EXPECT_THROW(of("max_pool", ElementType::f32, {1, 8, 8, image_patch(1, 3, 1, 2)}), Error)
      << "windows without a pixel";
}

TEST(MaxPool, AtRandom) {
  for (const ElementType type : kFloats)
    for (const auto& [size, patch] : {std::pair{std::array<std::int64_t, 3>{2, 9, 7}, image_patch(3, 3, 2, 1)},
                                      std::pair{std::array<std::int64_t, 3>{1, 56, 56}, image_patch(64, 2, 2, 0)},
                                      std::pair{std::array<std::int64_t, 3>{3, 30, 31}, image_patch(3, 7, 3, 3)}})
      of("max_pool", type, {size[0], size[1], size[2], patch}).uniform(0, 1).expect_agreement();
}

TEST(BatchNorm, ByHand) {
  for (const ElementType type : kFloats) {
    Trial trial = of("batch_norm", type, {2, 2}, {1}).give(0, {1, 2, 3, 4}).give(1, {1, 0}).give(2, {3, 0});
    // Deviations are 2 and 1.
    trial.give(3, {4, 1}).give(4, {0.5, -1}).expect_result(5, {0.5, 1, 4.5, 3});
  }
}

TEST(BatchNorm, AtRandom) {
  for (const ElementType type : kFloats)
    for (const Dims& dims : {Dims{1, 1}, Dims{7, 1}, Dims{130, 257}, Dims{4096, 32}}) {
      Trial trial = of("batch_norm", type, dims, {1e-5f}).uniform(0, 1).uniform(1, 2, 0.5f).uniform(2, 3, 0.4f, 0.6f);
      trial.uniform(3, 4).uniform(4, 5).expect_agreement();
    }
}

TEST(Augment, ByHand) {
  for (const ElementType type : kFloats) {
    Trial trial =
        of("augment", type, {2, 1, 3, 2}, {1, 2}).give(0, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}).give(1, {2, 3});
    trial.expect_result(2, {0, 2, 4, 6, 8, 10, 8, 10, 4, 6, 0, 2});
  }
}

TEST(Augment, AtRandom) {
  for (const ElementType type : kFloats)
    for (const Dims& dims : {Dims{1, 1, 1, 1}, Dims{5, 17, 33, 3}, Dims{2, 224, 224, 3}, Dims{3, 4, 5, 70}})
      of("augment", type, dims, {0.45f, 4.4f}).uniform(0, 1, 0.5f, 0.5f).integers(1, 2, -2, 3).expect_agreement();
}

TEST(Inference, GeometryAndCost) {
  const auto check = [](std::string_view name, ElementType type, Dims dims, Scalars scalars, unsigned grid,
                        unsigned block) {
    const KernelShape shape{.type = type, .dims = dims, .scalars = scalars};
    const Geometry geometry = kernel(kernel_named(name)).geometry(shape);
    EXPECT_EQ(geometry.grid, grid) << name;
    EXPECT_EQ(geometry.block, block) << name;
    EXPECT_GT(kernel(kernel_named(name)).cost(shape).bytes, 0) << name;
  };
  using enum ElementType;
  check("attention", f16, {16, 1, 2048, heads_of(16, 64)}, {}, 256, 256);     // a block per sequence and head
  check("attention", f16, {16, 5, 2048, heads_of(16, 64)}, {}, 512, 256);     // and per 4 queries
  check("attention", f16, {1, 512, 512, heads_of(16, 64)}, {}, 16 * 8, 128);  // 64 queries each
  check("attention", f32, {1, 512, 512, heads_of(16, 64)}, {}, 16 * 16, 128);
  check("top_k", f32, {2048, 64, 2}, {}, 256, 256);
  check("top_k", f32, {1, 100'000, 64}, {}, 1, 1024);
  check("arg_max", f32, {5, 32000}, {}, 5, 1024);
  check("ragged_gemm", f16, {2048, 4096, 1024, ragged_expert(0, 8, true, true)}, {2048, 4096}, 32 * 32, 256);
  check("route", i32, {65536, 256, 8}, {}, 1, 1024);
  check("admit", i32, {64, 8, 10, 10}, {}, 1, 256);
  check("accept", i32, {33, 4}, {}, 2, 32);
  check("advance", i32, {257}, {}, 2, 256);
  check("combine", f16, {100, 1024, 2, 8}, {4}, 50, 256);
  check("cache_write", f32, {16, 1, 2048, 1024}, {16}, 16, 256);
  check("im2col", f32, {1, 4, 4, image_patch(64, 3, 1, 1)}, {}, 16, 256);
  check("augment", f32, {2, 3, 100, 3}, {}, 6, 256);
  check("max_pool", f32, {1, 4, 4, image_patch(64, 2, 2, 0)}, {}, 1, 256);
  check("batch_norm", f32, {16, 64}, {1e-5f}, 4, 256);
}

}  // namespace
}  // namespace weir
