// Tables and declarations of kernels that cannot be used, and how elements are drawn and rounded.
#include "lab/kernels/package/host_part.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/kernels/package/build.h"
#include "lab/kernels/package/numbers.h"
#include "packages.h"

namespace weir::testing {
namespace {

using package::Backend;
using package::HostCase;
using package::HostPart;
using package::Number;

std::string opening(const PackageFolder& folder, std::vector<std::string> flags) {
  return words_of([&] {
    const package::Package package = folder.scale(std::move(flags));
    HostPart(build_host_part(package, package.parts[0], folder.options()), "scale");
  });
}

TEST(HostPart, a_missing_symbol_is_named) {
  const PackageFolder folder;
  EXPECT_NE(opening(folder, {"-DNO_SYMBOL"}).find("exports no function weir_kernel"), std::string::npos);
}

TEST(HostPart, another_version_is_refused_by_both_numbers) {
  const PackageFolder folder;
  const std::string words = opening(folder, {"-DABI=7"});
  EXPECT_NE(words.find("has version 7 of the kernel interface, this program has version 1"), std::string::npos)
      << words;
}

TEST(HostPart, a_null_function_is_named) {
  const PackageFolder folder;
  EXPECT_NE(opening(folder, {"-DNO_RUN"}).find("has no run()"), std::string::npos);
}

TEST(HostPart, a_file_that_is_no_library_is_refused) {
  const PackageFolder folder;
  const auto text = folder.write("kernel.so", "not a library");
  EXPECT_NE(words_of([&] { HostPart(text, "scale"); }).find("is not a shared object"), std::string::npos);
  const auto cut = folder.write("cut.so", std::string("\177ELF\2\1\1", 7));
  EXPECT_NE(words_of([&] { HostPart(cut, "scale"); }).find("cannot open"), std::string::npos);
  EXPECT_NE(words_of([&] { HostPart(folder.path() / "none.so", "scale"); }).find("not a shared object"),
            std::string::npos);
}

TEST(HostPart, a_function_without_a_body_is_named) {
  const PackageFolder folder;
  folder.write("kernel.cpp",
               "#include \"weir/kernel.h\"\nextern int nobody_wrote_this(void);\n"
               "const WeirKernel* weir_kernel(void) { return nobody_wrote_this() ? nullptr : nullptr; }\n");
  const package::Package package = folder.package("kernel.cpp");
  EXPECT_NE(words_of([&] {
              HostPart(build_host_part(package, package.parts[0], folder.options()), "scale");
            }).find("nobody_wrote_this"),
            std::string::npos);
}

TEST(HostCase, a_precision_that_changes_no_buffer_is_refused_as_a_label) {
  const PackageFolder folder;
  const auto words = [&](std::vector<std::string> flags, Precision precision) {
    return words_of([&] {
      const package::Package package = folder.scale(std::move(flags));
      const HostPart part(build_host_part(package, package.parts[0], folder.options()), "scale");
      HostCase(part, {Backend::cpu, precision, {}, 1}, 1);
    });
  };
  const std::string in = "-DIN={\"x\",0,2,state.n,0,0,1}", out = "-DOUT={\"y\",1,2,state.n,0,0,0}";
  EXPECT_NE(words({in, out}, Precision::fp16).find("fp16 would be a mere label"), std::string::npos);
  EXPECT_EQ(words({in}, Precision::fp16), "");
  EXPECT_EQ(words({in, out, "-DPRECISIONS=2"}, Precision::fp32), "");
  EXPECT_NE(words({in, out, "-DPRECISIONS=4"}, Precision::fp16).find("fp16 would be a mere label"), std::string::npos);
}

// What setup() declares, each time wrong in one way that the parameter chooses.
TEST(HostCase, declarations_that_cannot_be_used_are_refused_in_words) {
  struct Bad {
    const char* declared;
    const char* words;
  };
  const Bad bad[] = {
      {"{nullptr,0,0,4,0,0,1}", "buffer 0 has no name"},
      {"{\"a b\",0,0,4,0,0,1}", "buffer 0 has no name"},
      {"{\"y\",0,0,4,0,0,1}", "'y': declared twice"},
      {"{\"x\",3,0,4,0,0,1}", "'x' has the unknown role 3"},
      {"{\"x\",0,9,4,0,0,1}", "'x' has the unknown type 9"},
      {"{\"x\",0,0,0,0,0,1}", "'x' has no elements"},
      {"{\"x\",0,0,1ull<<63,0,0,1}", "more than any memory"},
      {"{\"x\",0,0,1ull<<62,0,0,1}", "more than any memory"},
      {"{\"x\",0,0,4,8,0,1}", "'x' has fill 8"},
      {"{\"x\",0,0,4,0,2,1}", "there is nothing between"},
  };
  std::string list = "-DBAD=";
  for (const Bad& one : bad) list += std::string(one.declared) + ",";
  const PackageFolder folder;
  const package::Package package = folder.scale({list});
  const HostPart part(build_host_part(package, package.parts[0], folder.options()), "scale");
  for (std::size_t i = 0; i < std::size(bad); ++i) {
    const double which = static_cast<double>(i) + 1;
    const std::string words =
        words_of([&] { HostCase(part, {Backend::cpu, Precision::fp16, {{"n", {which}}}, 1}, 1); });
    EXPECT_NE(words.find(bad[i].words), std::string::npos) << bad[i].declared << ": " << words;
  }
}

TEST(HostCase, work_that_makes_no_sense_is_refused_and_torn_down) {
  const PackageFolder folder;
  const package::Package package = folder.scale({"-DFLOP=-1.0"});
  const auto library = build_host_part(package, package.parts[0], folder.options());
  const HostPart part(library, "scale");
  EXPECT_NE(words_of([&] { HostCase(part, {Backend::cpu, Precision::fp32, {}, 1}, 1); }).find("says flop = -1"),
            std::string::npos);
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(reinterpret_cast<int (*)()>(::dlsym(handle, "test_setups"))(), 0);
}

TEST(HostCase, own_inputs_are_rounded_and_checked) {
  const PackageFolder folder;
  const auto part_of = [&](std::vector<std::string> flags) {
    const package::Package package = folder.scale(std::move(flags));
    return HostPart(build_host_part(package, package.parts[0], folder.options()), "scale");
  };
  const package::Case wanted{Backend::cpu, Precision::bf16, {{"n", {1000}}}, 0};
  const std::string own = "-DIN={\"x\",0,0,state.n,WEIR_OWN,0,0}";
  {
    const HostPart part = part_of({own});
    const HostCase one(part, wanted, 1);
    const auto values = one.decode(0, one.initial(0).data());
    EXPECT_EQ(values[255], 255);
    EXPECT_EQ(values[257], 256);  // bf16 has 8 digits: a tie, to even
    EXPECT_EQ(values[259], 260);
  }
  {
    const HostPart part = part_of({own, "-DBAD_FILL=__builtin_nan(\"\")"});
    const HostCase one(part, wanted, 1);
    EXPECT_NE(words_of([&] { one.initial(0); }).find("left element 1 unwritten"), std::string::npos);
  }
  {
    const HostPart part = part_of({"-DIN={\"x\",0,WEIR_U8,state.n,WEIR_OWN,0,0}"});
    const HostCase one(part, wanted, 1);
    EXPECT_NE(words_of([&] { one.initial(0); }).find("put 256 into element 256"), std::string::npos);
  }
}

WeirBuffer input(std::uint32_t fill, double low, double high, std::uint64_t count = 20000) {
  return {"x", WEIR_INPUT, WEIR_REAL, count, fill, low, high};
}

std::vector<double> drawn(const WeirBuffer& buffer, Number number, std::uint64_t seed = 5, std::uint32_t index = 0) {
  std::vector<std::byte> bytes(buffer.count * size_of(number));
  draw_all(buffer, index, seed, number, bytes.data());
  std::vector<double> values(buffer.count);
  decode(number, bytes.data(), values);
  return values;
}

TEST(Numbers, an_element_depends_on_seed_buffer_and_index_alone) {
  const WeirBuffer buffer = input(WEIR_UNIFORM, 0, 1, 1000);
  WeirBuffer shorter = buffer;
  shorter.count = 10;
  const auto all = drawn(buffer, Number::f64);
  const auto some = drawn(shorter, Number::f64);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  EXPECT_EQ(package::draw(buffer, 0, 5, 999), all[999]);
  EXPECT_NE(drawn(buffer, Number::f64, 6), all);
  EXPECT_NE(drawn(buffer, Number::f64, 5, 1), all);
  // The same on every machine and in every version: results of one seed are compared for years.
  EXPECT_EQ(package::draw(buffer, 0, 1337, 0), 0.59288466915125537);
}

TEST(Numbers, uniform_inputs_fill_their_range_and_never_reach_its_end) {
  for (const Number number : {Number::f64, Number::f32, Number::f16, Number::bf16}) {
    const auto values = drawn(input(WEIR_UNIFORM, -1, 3), number);
    double sum = 0;
    for (const double value : values) {
      ASSERT_GE(value, -1);
      ASSERT_LT(value, 3);
      sum += value;
    }
    EXPECT_NEAR(sum / 20000, 1, 0.05);
  }
  for (const double value : drawn(input(WEIR_UNIFORM, 2, 2, 10), Number::f32)) EXPECT_EQ(value, 2);
}

TEST(Numbers, normal_inputs_have_mean_and_deviation) {
  const auto values = drawn(input(WEIR_NORMAL, 10, 2), Number::f64);
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += (value - 10) * (value - 10);
  }
  EXPECT_NEAR(sum / 20000, 10, 0.06);
  EXPECT_NEAR(std::sqrt(squares / 20000), 2, 0.06);
}

TEST(Numbers, whole_inputs_are_all_of_them_alike) {
  std::vector<int> counts(5);
  for (const double value : drawn(input(WEIR_WHOLE, -2, 3), Number::i32))
    ++counts.at(static_cast<std::size_t>(value + 2));
  for (const int count : counts) EXPECT_NEAR(count, 4000, 300);
  // In a type that cannot hold all of them, none is lifted to the end.
  for (const double value : drawn(input(WEIR_WHOLE, 0, 4095), Number::bf16)) ASSERT_LT(value, 4095);
}

TEST(Numbers, ranges_that_a_type_cannot_hold_are_refused) {
  EXPECT_NE(trouble_with_fill(input(WEIR_UNIFORM, 0, 1e6), Number::f16), "");
  EXPECT_EQ(trouble_with_fill(input(WEIR_UNIFORM, 0, 1e6), Number::bf16), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_WHOLE, 0, 257), Number::u8), "");
  EXPECT_EQ(trouble_with_fill(input(WEIR_WHOLE, 0, 256), Number::u8), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_WHOLE, 0.5, 3), Number::f32), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_WHOLE, 3, 3), Number::i32), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_NORMAL, 0, -1), Number::f32), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_UNIFORM, 0, std::nan("")), Number::f32), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_UNIFORM, -1e308, 1e308), Number::f64), "");  // the range has no size
  EXPECT_EQ(trouble_with_fill(input(WEIR_UNIFORM, 0, 256), Number::u8), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_UNIFORM, 0, 256.5), Number::u8), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_NORMAL, 1e6, 1), Number::f16), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_NORMAL, 0, 1e4), Number::f16), "");
  EXPECT_EQ(trouble_with_fill(input(WEIR_NORMAL, 0, 1e3), Number::f16), "");
  EXPECT_EQ(trouble_with_fill(input(WEIR_UNIFORM, -448, 448), Number::fp8_e4m3), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_UNIFORM, 0, 449), Number::fp8_e4m3), "") << "it would be full of 448";
  EXPECT_EQ(trouble_with_fill(input(WEIR_UNIFORM, 0, 449), Number::fp8_e5m2), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_NORMAL, 0, 100), Number::fp8_e4m3), "");
  EXPECT_NE(trouble_with_fill(input(WEIR_WHOLE, -1, 5), Number::u32), "");
}

TEST(Numbers, poison_is_nan_or_the_number_of_all_bits) {
  const std::vector<std::byte> poison(8, package::kPoison);
  const auto value_of = [&](Number number) {
    double value = 0;
    decode(number, poison.data(), {&value, 1});
    return value;
  };
  for (const Number number : {Number::f64, Number::f32, Number::f16, Number::bf16, Number::fp8_e4m3, Number::fp8_e5m2})
    EXPECT_TRUE(std::isnan(value_of(number)));
  EXPECT_EQ(value_of(Number::i32), -1);
  EXPECT_EQ(value_of(Number::i64), -1);
  EXPECT_EQ(value_of(Number::u32), 4294967295.0);
  EXPECT_EQ(value_of(Number::u8), 255);
}

TEST(Numbers, whole_numbers_that_do_not_fit_are_found) {
  std::byte bytes[64];
  const double values[] = {1, 2.4, 300};
  EXPECT_EQ(encode(Number::u8, values, bytes), 2U);
  EXPECT_EQ(encode(Number::i32, values, bytes), 3U);
  const double edges[] = {-2147483648.0, 2147483647.0, 2147483648.0};
  EXPECT_EQ(encode(Number::i32, edges, bytes), 2U);
  const double large[] = {9.3e18};
  EXPECT_EQ(encode(Number::i64, large, bytes), 0U);
}

}  // namespace
}  // namespace weir::testing
