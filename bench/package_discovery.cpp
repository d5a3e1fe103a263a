// How long it takes to find 1,000 kernel packages and to write their manifest: the bar is 1 s. Makes them in a
// temporary folder, each with sources, a bench.yaml of 20 lines and an include folder, in 20 groups.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lab/kernels/package/discovery.h"

namespace {

namespace fs = std::filesystem;

constexpr int kPackages = 1000;
constexpr int kRuns = 5;
constexpr const char* kConfig = R"(# One sweep, two tolerances, one condition.
problem_size:
  rows: [256, 1024, 4096]
  grid: [[64, 64, 64], [128, 128, 128]]
  tolerance: 1.0e-5
precisions:
  - fp32
  - fp16
backends:
  - cpu
  - cuda
tolerances:
  rmse: 1.0e-3
  relative_error: 1.0e-2
skip_conditions:
  - backend: cuda
    reason: no CUDA
    check: not cuda.is_present
iterations: 30
seed: 1337
)";

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void make_packages(const fs::path& root) {
  std::string source = "#include <omp.h>\n#include <weir/kernel.h>\n";
  for (int line = 0; line < 200; ++line)
    source += fmt::format("static int function_{}() {{ return {}; }}\n", line, line);
  for (int i = 0; i < kPackages; ++i) {
    const fs::path folder = root / fmt::format("group_{}", i % 20) / fmt::format("kernel_{}", i);
    put(folder / "kernel.cpp", source);
    put(folder / "kernel.cu", source);
    put(folder / "bench.yaml", kConfig);
    put(folder / "include" / "sizes.h", "");
  }
}

}  // namespace

int main() {
  std::string folder = (fs::temp_directory_path() / "weir-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  make_packages(folder);
  std::vector<double> discover_ms, manifest_ms;
  std::size_t bytes = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const auto discovery = weir::package::discover(std::array{fs::path(folder)});
    const auto middle = std::chrono::steady_clock::now();
    bytes = weir::to_text(weir::package::manifest_document(discovery, {})).size();
    const auto end = std::chrono::steady_clock::now();
    // The work is checked where it is timed.
    const bool is_good =
        discovery.packages.size() == kPackages &&
        std::all_of(discovery.packages.begin(), discovery.packages.end(), [](const weir::package::Package& package) {
          return package.trouble.empty() && package.parts.size() == 2 && package.config.seed == 1337;
        });
    if (!is_good) {
      fmt::print(stderr, "the packages were not found as they were made\n");
      return 1;
    }
    discover_ms.push_back(std::chrono::duration<double, std::milli>(middle - begin).count());
    manifest_ms.push_back(std::chrono::duration<double, std::milli>(end - middle).count());
  }
  fs::remove_all(folder);
  std::sort(discover_ms.begin(), discover_ms.end());
  std::sort(manifest_ms.begin(), manifest_ms.end());
  fmt::print(
      "{} packages, {} runs: found in {:.0f} ms (slowest {:.0f}); manifest of {} KiB in {:.0f} ms; bar 1000 ms\n",
      kPackages, kRuns, discover_ms[kRuns / 2], discover_ms.back(), bytes >> 10, manifest_ms[kRuns / 2]);
  return 0;
}
