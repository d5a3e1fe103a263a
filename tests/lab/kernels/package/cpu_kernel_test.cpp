// From a folder to a kernel that runs here, and what its results are worth.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <set>

#include "lab/kernels/package/build.h"
#include "lab/kernels/package/host_memory.h"
#include "packages.h"

namespace weir::testing {
namespace {

using package::Backend;
using package::Case;
using package::Checked;

std::unique_ptr<package::OpenPackage> open(const PackageFolder& folder, std::vector<std::string> flags = {}) {
  return open_package(folder.scale(std::move(flags)), Backend::cpu, folder.options());
}

Checked check(const PackageFolder& folder, std::vector<std::string> flags, Precision precision = Precision::fp32) {
  const auto kernel = open(folder, std::move(flags))->prepare({Backend::cpu, precision, {{"n", {100}}}, 7});
  return kernel->check();
}

double largest_error(const package::CheckedOutput& output) {
  double largest = 0;
  for (std::size_t i = 0; i < output.actual.size(); ++i)
    largest = std::max(largest, std::abs(output.actual[i] - output.expected[i]));
  return largest;
}

TEST(CpuKernel, a_folder_becomes_a_kernel_that_runs) {
  const PackageFolder folder;
  const auto package = open(folder);
  EXPECT_EQ(package->summary(), "y = 2 x + 1");
  EXPECT_EQ(package->backends(), 1U);
  EXPECT_EQ(package->precisions(), 15U);
  EXPECT_EQ(package->defaults(), (package::Problem{{"n", {1024}}}));
  const auto kernel = package->prepare({Backend::cpu, Precision::fp32, {}, 1});
  EXPECT_EQ(kernel->work().flop, 2048);
  EXPECT_EQ(kernel->work().bytes, std::nullopt);
  EXPECT_EQ(kernel->work().items, 1024);
  EXPECT_EQ(kernel->work().item_name, "elements");
  EXPECT_EQ(kernel->how(), "called");
  EXPECT_EQ(kernel->device_name(), "cpu");
  EXPECT_EQ(kernel->launches_per_run(), std::nullopt);
  EXPECT_GT(kernel->resolution_ns(), 0);
  const package::BatchTime time = kernel->run(1000);
  EXPECT_GT(time.device_ns, 0);
  EXPECT_EQ(time.device_ns, time.host_ns);
  EXPECT_FALSE(time.wall_ns);
  const package::KernelMemory memory = kernel->memory();
  EXPECT_EQ(memory.allocated_bytes, 2U * 1024 * 4);
  EXPECT_TRUE(memory.peak_bytes || !memory.reason.empty());
}

TEST(CpuKernel, precision_changes_the_numbers_and_not_a_label) {
  const PackageFolder folder;
  const auto package = open(folder, {"-DPRECISIONS=0x6f"});
  double last = -1;
  for (const Precision precision : package::kPrecisions) {
    const auto kernel = package->prepare({Backend::cpu, precision, {}, 3});
    const Checked checked = kernel->check();
    EXPECT_EQ(checked.faults, std::vector<std::string>());
    ASSERT_EQ(checked.outputs.size(), 1U);
    EXPECT_EQ(checked.outputs[0].name, "y");
    EXPECT_FALSE(checked.outputs[0].is_whole);
    EXPECT_EQ(kernel->memory().allocated_bytes, 2U * 1024 * static_cast<unsigned>(facts_of(precision).bytes));
    // Each has fewer digits than the one before, and its largest error shows that.
    const double error = largest_error(checked.outputs[0]);
    if (precision == Precision::fp64) {
      EXPECT_EQ(error, 0);
    } else {
      EXPECT_GT(error, last);
    }
    last = error;
    // Values are below 4, and each is rounded once.
    EXPECT_LE(error, 4 * rounding_of(precision)) << name_of(precision);
  }
  EXPECT_GT(last, 0.1);
}

TEST(CpuKernel, inputs_come_from_the_seed) {
  const PackageFolder folder;
  const auto package = open(folder);
  const auto results = [&](std::uint64_t seed) {
    return package->prepare({Backend::cpu, Precision::fp64, {{"n", {50}}}, seed})->check().outputs[0].actual;
  };
  EXPECT_EQ(results(1), results(1));
  EXPECT_NE(results(1), results(2));
  const auto drawn = results(1);
  EXPECT_EQ(std::set<double>(drawn.begin(), drawn.end()).size(), 50U);
}

TEST(CpuKernel, elements_that_are_never_written_are_counted) {
  const PackageFolder folder;
  for (const Precision precision : package::kPrecisions) {
    const Checked checked = check(folder, {"-DSKIPPED=12", "-DPRECISIONS=0x6f"}, precision);
    EXPECT_EQ(checked.faults, std::vector<std::string>{"output y: 12 of 100 elements were never written"});
  }
}

TEST(CpuKernel, what_an_earlier_run_wrote_does_not_count) {
  const PackageFolder folder;
  // Nothing is written at all, and that shows in each check, not only in the first.
  const auto kernel = open(folder, {"-DSKIPPED=100"})->prepare({Backend::cpu, Precision::fp32, {{"n", {100}}}, 7});
  kernel->run(3);
  EXPECT_EQ(kernel->check().faults.size(), 1U);
  EXPECT_EQ(kernel->check().faults.size(), 1U);
}

TEST(CpuKernel, nan_in_an_output_is_a_fault_of_its_own) {
  const PackageFolder folder;
  EXPECT_EQ(check(folder, {"-DNAN_AT=3"}).faults, std::vector<std::string>{"output y: 1 of 100 elements are NaN"});
}

TEST(CpuKernel, a_changed_input_is_a_fault) {
  const PackageFolder folder;
  const Checked checked = check(folder, {"-DTOUCHES"});
  EXPECT_EQ(checked.faults, std::vector<std::string>{"wrote to its input 'x'"});
}

// Drawing inputs takes longer than most measurements. This fill() gives something else each time it is called.
TEST(CpuKernel, inputs_are_made_once_however_often_they_are_checked) {
  const PackageFolder folder;
  const auto kernel = open(folder, {"-DIN={\"x\",0,0,state.n,WEIR_OWN,0,0}", "-DBAD_FILL=(double)(100+setups++)"})
                          ->prepare({Backend::cpu, Precision::fp32, {{"n", {100}}}, 7});
  for (int i = 0; i < 3; ++i) {
    const Checked checked = kernel->check();
    EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
    EXPECT_EQ(largest_error(checked.outputs.at(0)), 0);
  }
}

TEST(CpuKernel, a_write_past_the_end_is_a_fault) {
  const PackageFolder folder;
  EXPECT_EQ(check(folder, {"-DPASSES"}).faults, std::vector<std::string>{"wrote past the end of 'y'"});
}

TEST(CpuKernel, without_a_reference_there_is_a_reason_and_poison_still_shows) {
  const PackageFolder folder;
  const Checked checked = check(folder, {"-DNO_REFERENCE", "-DSKIPPED=1"});
  EXPECT_EQ(checked.reason, "the kernel has no reference");
  ASSERT_EQ(checked.outputs.size(), 1U);
  EXPECT_EQ(checked.outputs[0].actual.size(), 100U);
  EXPECT_TRUE(checked.outputs[0].expected.empty());
  EXPECT_EQ(checked.faults, std::vector<std::string>{"output y: 1 of 100 elements were never written"});
}

TEST(CpuKernel, the_kernels_own_words_are_told) {
  const PackageFolder folder;
  const auto package = open(folder);
  EXPECT_EQ(words_of([&] { package->prepare({Backend::cpu, Precision::fp32, {{"n", {-1}}}, 1}); }),
            "scale: setup() failed with 3: n must be positive?[31m | ");
  const auto failing = open(folder, {"-DRUN_FAILS"})->prepare({Backend::cpu, Precision::fp32, {}, 1});
  EXPECT_EQ(words_of([&] { failing->run(2); }), "scale: run() failed with 9: the run went wrong | ");
  EXPECT_NE(words_of([&] {
              open(folder, {"-DTHROWS"})->prepare({Backend::cpu, Precision::fp32, {}, 1});
            }).find("scale: setup() threw no such luck"),
            std::string::npos);
}

TEST(CpuKernel, parameters_and_precisions_that_it_does_not_have_are_refused) {
  const PackageFolder folder;
  const auto package = open(folder, {"-DNO_BF16"});
  EXPECT_NE(
      words_of([&] { package->prepare({Backend::cpu, Precision::fp32, {{"m", {1}}}, 1}); }).find("no parameter 'm'"),
      std::string::npos);
  EXPECT_EQ(words_of([&] { package->prepare({Backend::cpu, Precision::fp32, {{"n", {1, 2}}}, 1}); }),
            "scale: parameter 'n' takes 1 value, not 2 | ");
  EXPECT_EQ(words_of([&] { package->prepare({Backend::cpu, Precision::bf16, {}, 1}); }),
            "scale: the kernel has no bf16 | It has fp64, fp32, fp16.");
}

TEST(CpuKernel, a_backend_that_the_table_does_not_name_is_refused) {
  const PackageFolder folder;
  EXPECT_NE(words_of([&] { open(folder, {"-DBACKENDS=WEIR_CUDA"}); }).find("says that it does not serve cpu"),
            std::string::npos);
  EXPECT_NE(
      words_of([&] { open_package(folder.scale(), Backend::cuda, folder.options()); }).find("has nothing for cuda"),
      std::string::npos);
  // Also where the form of the package could serve it.
  folder.write("kernel.cu", kScaleSource);
  EXPECT_NE(words_of([&] {
              open_package(folder.package("kernel.cu"), Backend::cuda, folder.options());
            }).find("says that it does not serve cuda"),
            std::string::npos);
}

TEST(CpuKernel, cold_runs_are_timed_one_by_one) {
  const PackageFolder folder;
  const auto kernel = open(folder)->prepare({Backend::cpu, Precision::fp32, {}, 1});
  if (!kernel->cold_reason().empty()) GTEST_SKIP() << kernel->cold_reason();
  EXPECT_GT(kernel->run_cold().device_ns, 0);
  // What empties the caches is ours, not the kernel's.
  if (const auto peak = kernel->memory().peak_bytes) {
    EXPECT_LT(*peak, *package::last_cache_bytes());
  }
}

TEST(CpuKernel, a_problem_beyond_memory_is_refused_before_anything_is_allocated) {
  const PackageFolder folder;
  const auto package = open(folder);
  EXPECT_NE(
      words_of([&] { package->prepare({Backend::cpu, Precision::fp64, {{"n", {1e14}}}, 1}); }).find("are available"),
      std::string::npos);
  EXPECT_NE(words_of([&] {
              package->prepare({Backend::cpu, Precision::fp64, {{"n", {4e18}}}, 1});
            }).find("more than any memory"),
            std::string::npos);
}

TEST(CpuKernel, a_library_that_somebody_built_is_opened_as_it_is) {
  const PackageFolder folder;
  const package::Package source = folder.scale();
  const auto built = build_host_part(source, source.parts[0], folder.options());
  std::filesystem::copy_file(built, folder.path() / "kernel.so");
  const auto kernel = open_package(folder.package("kernel.so"), Backend::cpu, folder.options())
                          ->prepare({Backend::cpu, Precision::fp32, {}, 1});
  EXPECT_EQ(kernel->how(), "library");
  EXPECT_TRUE(kernel->check().faults.empty());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
TEST(CpuKernel, peak_memory_is_the_kernels_and_not_that_of_checking_it) {
  const PackageFolder folder;
  const auto package = open(folder);
  // The second one finds what the first one freed.
  for (int i = 0; i < 2; ++i) {
    const auto kernel = package->prepare({Backend::cpu, Precision::fp32, {{"n", {2e6}}}, 7});
    kernel->check();
    kernel->run(2);
    const package::KernelMemory memory = kernel->memory();
    if (!memory.peak_bytes) GTEST_SKIP() << memory.reason;
    const double peak = static_cast<double>(*memory.peak_bytes) / 16e6;
    EXPECT_GE(peak, 0.95) << i;  // pages that were there before may hold some of it
    EXPECT_LE(peak, 1.5) << i;
  }
}
#endif

TEST(PeakMemory, what_is_held_while_paused_does_not_count) {
  package::PeakMemory peak;
  if (!peak.reason().empty()) GTEST_SKIP() << peak.reason();
  const std::uint64_t large = std::uint64_t{64} << 20;
  // Straight from the system: sanitizers keep what is freed.
  const auto use = [&] {
    void* const memory = ::mmap(nullptr, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::memset(memory, 1, large);
    ::munmap(memory, large);
  };
  peak.pause();
  use();
  peak.resume();
  EXPECT_LT(*peak.bytes(), large / 2);
  use();
  EXPECT_GE(*peak.bytes(), large / 2);
}

TEST(PeakMemory, says_why_there_is_none) {
  package::PeakMemory peak("/nowhere");
  EXPECT_EQ(peak.bytes(), std::nullopt);
  EXPECT_NE(peak.reason().find("/nowhere/self/clear_refs"), std::string::npos);
}

TEST(CacheEmptier, says_why_it_cannot) {
  EXPECT_FALSE(package::CacheEmptier(std::nullopt).reason().empty());
  EXPECT_NE(package::CacheEmptier(std::uint64_t{1} << 30).reason().find("1.00 GiB"), std::string::npos);
  EXPECT_EQ(package::CacheEmptier(1 << 20).bytes(), 2U << 20);
}

}  // namespace
}  // namespace weir::testing
