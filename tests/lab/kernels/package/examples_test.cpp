// The packages in kernels/: found, built as they are shipped, right in every precision that they offer, and judged
// wrong where they are. What runs on CUDA is compiled here and run by the GPU tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "device/gpu/compiler.h"
#include "device/opencl/platforms.h"
#include "lab/kernels/accuracy.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/discovery.h"
#include "packages.h"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;
using package::Backend;
using package::Problem;

// A package, problems that leave something over in each loop, and a fault that a stranger might build in: it replaces
// text in kernel.cpp.
struct Example {
  const char* name;
  std::vector<Problem> problems;
  const char *right, *wrong;
  Problem refused;
  const char* why;

  friend void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }
};

const std::vector<Example>& examples() {
  static const std::vector<Example> kExamples = {
      {"fft",
       {{{"length", {16}}, {"batch", {3}}}, {{"length", {512}}, {"batch", {2}}}, {{"length", {1024}}, {"batch", {1}}}},
       "y3_re * w3_im + y3_im * w3_re",
       "y3_re * w3_im - y3_im * w3_re",
       {{"length", {48}}},
       "length must be a power of two"},
      {"histogram",
       {{{"count", {1}}, {"bins", {2}}}, {{"count", {10007}}, {"bins", {256}}}, {{"count", {5000}}, {"bins", {4096}}}},
       "bin > last ? last : bin",
       "bin >= last ? last - 1 : bin",
       {{"bins", {100}}},
       "bins must be a power of two"},
      {"pressure_poisson",
       {{{"grid", {1, 1, 1}}, {"sweeps", {2}}},
        {{"grid", {7, 5, 3}}, {"sweeps", {3}}},
        {{"grid", {16, 9, 8}}, {"sweeps", {1}}},
        {{"grid", {33, 2, 4}}, {"sweeps", {10}}}},
       "z > 0 ? from + at - plane : zeros",
       "z > 1 ? from + at - plane : zeros",
       {{"grid", {64, 64, 0}}},
       "grid must be three whole numbers"},
      {"reduction",
       {{{"count", {1}}}, {{"count", {31}}}, {{"count", {8192}}}, {{"count", {100003}}}},
       "std::uint64_t i = even; i < count",
       "std::uint64_t i = even + 1; i < count",
       {{"count", {0.5}}},
       "count must be a whole number"},
      {"softmax",
       {{{"rows", {1}}, {"columns", {1}}}, {{"rows", {3}}, {"columns", {37}}}, {{"rows", {2}}, {"columns", {4096}}}},
       "Wide{1} / sum",
       "Wide{1} / (sum + kept[0])",
       {{"rows", {0}}},
       "rows must be a whole number"},
      {"spmv",
       {{{"rows", {131}}, {"row_entries", {7}}}, {{"rows", {2000}}, {"row_entries", {16}}, {"band", {64}}}},
       "(sums[2] + sums[3])",
       "sums[2]",
       {{"band", {3}}},
       "band must be 0"},
  };
  return kExamples;
}

fs::path kernels_folder() { return fs::path(WEIR_SOURCE_DIR) / "kernels"; }

package::Package find(const std::string& name, const fs::path& root = kernels_folder()) {
  const fs::path folders[] = {root / name};
  package::Discovery discovery = package::discover(folders);
  EXPECT_EQ(discovery.packages.size(), 1U);
  return discovery.packages.at(0);
}

// Tests run in the build folder; what is built of the packages as they are shipped is kept there from test to test.
package::OpenOptions kept() {
  package::OpenOptions options;
  options.cache = fs::current_path() / "example_cache";
  options.include = fs::current_path() / "example_include";
  return options;
}

std::vector<Precision> precisions_of(const package::OpenPackage& package) {
  std::vector<Precision> offered;
  for (const Precision precision : package::kPrecisions)
    if ((package.precisions() & bit_of(precision)) != 0) offered.push_back(precision);
  return offered;
}

bench::Accuracy judge(package::OpenPackage& opened, const package::Package& package, const package::Case& wanted) {
  const auto kernel = opened.prepare(wanted);
  kernel->run(2);  // a result must not depend on how often it was computed
  const package::Checked checked = kernel->check();
  EXPECT_EQ(checked.reason, "");
  return bench::judge_accuracy(checked, wanted.precision, package.config.tolerance_of(wanted.precision));
}

std::string text_of_file(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return std::move(text).str();
}

class Examples : public ::testing::TestWithParam<Example> {};

TEST_P(Examples, is_right_in_every_precision_that_it_offers) {
  const package::Package package = find(GetParam().name);
  const auto opened = open_package(package, Backend::cpu, kept());
  EXPECT_GE(precisions_of(*opened).size(), 3U);
  for (const Precision precision : precisions_of(*opened)) {
    for (const Problem& problem : GetParam().problems) {
      const bench::Accuracy accuracy = judge(*opened, package, {Backend::cpu, precision, problem, 1337});
      EXPECT_TRUE(accuracy.is_accurate) << name_of(precision) << " " << text_of(problem) << ": " << accuracy.inaccuracy;
      EXPECT_TRUE(accuracy.block["relative_error"].is_number());
    }
  }
}

TEST_P(Examples, says_what_a_run_costs_and_gives_the_same_bits_twice) {
  const auto opened = open_package(find(GetParam().name), Backend::cpu, kept());
  const package::Case wanted{Backend::cpu, Precision::fp32, GetParam().problems.back(), 5};
  const auto kernel = opened->prepare(wanted);
  EXPECT_GT(kernel->work().flop.value_or(0), 0);
  EXPECT_GT(kernel->work().bytes.value_or(0), 0);
  EXPECT_GT(kernel->work().items.value_or(0), 0);
  EXPECT_NE(kernel->work().item_name, "");
  const package::Checked first = kernel->check(), second = kernel->check();
  ASSERT_EQ(first.outputs.size(), second.outputs.size());
  for (std::size_t i = 0; i < first.outputs.size(); ++i)
    EXPECT_EQ(first.outputs[i].actual, second.outputs[i].actual) << first.outputs[i].name;
}

TEST_P(Examples, refuses_a_problem_that_it_cannot_solve) {
  const auto opened = open_package(find(GetParam().name), Backend::cpu, kept());
  const std::string words = words_of([&] { opened->prepare({Backend::cpu, Precision::fp32, GetParam().refused, 1}); });
  EXPECT_NE(words.find(GetParam().why), std::string::npos) << words;
}

TEST_P(Examples, with_a_fault_built_in_is_judged_wrong) {
  const PackageFolder folder;
  std::string source = text_of_file(kernels_folder() / GetParam().name / "kernel.cpp");
  const std::size_t at = source.find(GetParam().right);
  ASSERT_NE(at, std::string::npos);
  source.replace(at, std::string(GetParam().right).size(), GetParam().wrong);
  folder.write("kernel.cpp", source);
  const package::Package package = folder.package("kernel.cpp");
  const auto opened = open_package(package, Backend::cpu, folder.options());
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const auto is_caught = [&](const Problem& problem) {
      return !judge(*opened, package, {Backend::cpu, precision, problem, 1337}).is_accurate;
    };
    EXPECT_TRUE(std::any_of(GetParam().problems.begin(), GetParam().problems.end(), is_caught)) << name_of(precision);
  }
}

TEST_P(Examples, has_a_config_that_fits_its_kernel) {
  const package::Package package = find(GetParam().name);
  EXPECT_EQ(package.trouble, "");
  EXPECT_TRUE(package.has_config);
  const auto opened = open_package(package, Backend::cpu, kept());
  const Problem defaults = opened->defaults();
  for (const package::Sweep& sweep : package.config.problem_size)
    EXPECT_TRUE(std::any_of(defaults.begin(), defaults.end(), [&](const package::Setting& setting) {
      return setting.name == sweep.name;
    })) << sweep.name;
  for (const Precision precision : package.config.precisions)
    EXPECT_NE(opened->precisions() & bit_of(precision), 0U) << name_of(precision);
  for (const Backend backend : package.config.backends) {
    EXPECT_NE(opened->backends() & package::bit_of(backend), 0U) << name_of(backend);
    const auto served = package.backends();
    EXPECT_NE(std::find(served.begin(), served.end(), backend), served.end()) << name_of(backend);
  }
}

TEST_P(Examples, has_code_for_cuda_that_compiles) {
  std::string reason;
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  GpuSource source{.name = "kernel.cu", .text = text_of_file(kernels_folder() / GetParam().name / "kernel.cu")};
  for (const package::EmbeddedHeader& header : package::embedded_headers())
    source.headers.emplace_back("weir/" + std::string(header.name), header.text);
  for (const Precision precision : package::kPrecisions) {
    source.options = {"-std=c++17", "-DWEIR_PRECISION=" + std::to_string(bit_of(precision))};
    EXPECT_EQ(words_of([&] { EXPECT_FALSE(compiler->compile(source, "sm_90").empty()); }), "") << name_of(precision);
  }
}

TEST_P(Examples, is_right_on_opencl_too_where_it_has_code_for_it) {
  package::Package package = find(GetParam().name);
  if (package.find(package::Form::opencl_source) == nullptr) GTEST_SKIP() << "no kernel.cl";
#if WEIR_HAVE_OPENCL
  setenv("POCL_CACHE_DIR", (fs::current_path() / "pocl_cache").c_str(), 0);
  fs::create_directories(std::getenv("POCL_CACHE_DIR"));
  if (opencl_devices().devices.empty()) GTEST_SKIP() << opencl_devices().reason;
  const bool has_fp64 = opencl_devices().devices[0]->facts().offers("cl_khr_fp64");
  const auto opened = open_package(package, Backend::opencl, kept());
  for (const Precision precision : precisions_of(*opened)) {
    if (precision == Precision::fp64 && !has_fp64) continue;
    for (const Problem& problem : GetParam().problems) {
      const bench::Accuracy accuracy = judge(*opened, package, {Backend::opencl, precision, problem, 1337});
      EXPECT_TRUE(accuracy.is_accurate) << name_of(precision) << " " << text_of(problem) << ": " << accuracy.inaccuracy;
    }
  }
#else
  GTEST_SKIP() << "left out of this build";
#endif
}

INSTANTIATE_TEST_SUITE_P(Each, Examples, ::testing::ValuesIn(examples()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(ExampleFolder, has_these_six_and_no_other) {
  const fs::path folders[] = {kernels_folder()};
  const package::Discovery discovery = package::discover(folders);
  ASSERT_EQ(discovery.packages.size(), examples().size());
  int with_opencl = 0;
  for (std::size_t i = 0; i < examples().size(); ++i) {
    const package::Package& package = discovery.packages[i];
    EXPECT_EQ(package.name, examples()[i].name);
    EXPECT_NE(package.find(package::Form::cuda_source), nullptr) << package.name;
    with_opencl += package.find(package::Form::opencl_source) != nullptr ? 1 : 0;
  }
  EXPECT_GE(with_opencl, 2);
}

TEST(ExampleExecutable, in_python_is_right_and_says_what_it_cannot_do) {
  if (std::system("python3 -c '' >/dev/null 2>&1") != 0) GTEST_SKIP() << "python3 is not there";
  const package::Package package = find("bench_executable", fs::path(WEIR_SOURCE_DIR) / "docs" / "examples");
  EXPECT_EQ(package.trouble, "");
  const auto opened = open_package(package, Backend::cpu, kept());
  for (const double count : {1.0, 1000.0}) {
    const bench::Accuracy accuracy =
        judge(*opened, package, {Backend::cpu, Precision::fp64, {{"count", {count}}}, 1337});
    EXPECT_TRUE(accuracy.is_accurate) << accuracy.inaccuracy;
  }
  const std::string words =
      words_of([&] { opened->prepare({Backend::cpu, Precision::fp64, {{"count", {0.5}}}, 1337}); });
  EXPECT_NE(words.find("count must be a whole number"), std::string::npos) << words;
  EXPECT_NE(words_of([&] { opened->prepare({Backend::cpu, Precision::fp32, {}, 1337}); }), "");
}

}  // namespace
}  // namespace weir::testing
