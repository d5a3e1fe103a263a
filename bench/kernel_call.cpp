// What `weir bench` adds to a kernel on the CPU: an empty kernel in a package, built and opened as any other, timed by
// the harness in batches and by a plain loop over the same function. The bar is 50 ns per run.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/clock.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/host_part.h"
#include "measure/statistics.h"

namespace {

using namespace weir;
using namespace weir::package;
namespace fs = std::filesystem;

constexpr double kBar_ns = 50;
constexpr int kRounds = 101;

constexpr const char* kSource = R"~(#include "weir/kernel.h"
static const WeirBuffer buffers[] = {{"x", WEIR_OUTPUT, WEIR_REAL, 1, 0, 0, 0}};
static int setup(const WeirProblem*, WeirSetup* setup, void**) {
  setup->buffer_count = 1;
  setup->buffers = buffers;
  return 0;
}
static int run(void*, WeirStream*) { return 0; }
static void teardown(void*) {}
static const WeirKernel kernel = {WEIR_KERNEL_ABI, sizeof(WeirKernel), "does nothing", WEIR_CPU, WEIR_FP32, 0, nullptr,
                                  setup, nullptr, run, nullptr, teardown, nullptr};
const WeirKernel* weir_kernel(void) { return &kernel; }
)~";

// A folder that goes away with the object.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "weir_kernel_call.XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code status;
    fs::remove_all(path, status);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

}  // namespace

int main() {
  const Folder folder;
  Package empty;
  empty.name = "empty";
  empty.folder = folder.path / "empty";
  fs::create_directory(empty.folder);
  empty.parts.push_back({Form::host_source, empty.folder / "kernel.cpp"});
  std::ofstream(empty.parts[0].file) << kSource;
  OpenOptions options;
  options.cache = folder.path / "cache";
  options.include = folder.path / "include";

  const auto opened = open_package(empty, Backend::cpu, options);
  const auto ready = opened->prepare({Backend::cpu, Precision::fp32, {}, 1});
  // The same library once more: from the cache, at the same address.
  const HostPart part(build_host_part(empty, empty.parts[0], options), empty.name);
  const auto function = part.table().run;
  WeirStream stream{};

  fmt::print("an empty kernel, {} rounds each, medians; clock step {:.0f} ns\n\n", kRounds, ready->resolution_ns());
  fmt::print("{:>10}{:>16}{:>16}{:>16}\n", "batch", "harness ns/run", "loop ns/run", "added ns/run");
  double worst = 0;
  for (const std::uint64_t batch : {1u, 10u, 100u, 10'000u}) {
    std::vector<double> harness, loop;
    for (int round = 0; round < kRounds; ++round) {
      harness.push_back(ready->run(batch).device_ns / static_cast<double>(batch));
      // The clock is read once for many batches here, so that what it costs shows as added by the harness.
      const std::uint64_t calls = std::max<std::uint64_t>(batch, 10'000);
      int results = 0;
      const std::int64_t start = now_ns();
      for (std::uint64_t i = 0; i < calls; ++i) results |= function(nullptr, &stream);
      loop.push_back(static_cast<double>(now_ns() - start + results) / static_cast<double>(calls));
    }
    const double added = median(harness) - median(loop);
    worst = std::max(worst, added);
    fmt::print("{:>10}{:>16.2f}{:>16.2f}{:>16.2f}\n", batch, median(harness), median(loop), added);
  }
  fmt::print("\nat most {:.2f} ns per run are added; the bar is {:.0f} ns: {}\n", worst, kBar_ns,
             worst < kBar_ns ? "met" : "NOT met");
  return 0;
}
