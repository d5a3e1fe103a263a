// The example package softmax as `weir bench` times it against a hand-written loop with events, of the same machine
// code, in one process and in alternating rounds. The bar: medians within 2 %.
#include "gpu_kernel_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "device/gpu/compiler.h"
#include "device/gpu/cuda.h"
#include "lab/kernels/package/build.h"
#include "lab/kernels/package/ready_kernel.h"
#include "measure/statistics.h"

namespace {

using namespace weir;

constexpr double kBar = 0.02;
constexpr int kRounds = 31;
constexpr double kBatch_ms = 10;

std::string read(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string compile(const std::string& source, Precision precision) {
  std::string reason;
  const GpuApi* const api = cuda_api(&reason);
  if (api == nullptr) fail(reason);
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) fail(reason);
  GpuFacts facts;
  if (api->facts(0, &facts) != 0) fail("cuda:0 does not say what it is");
  GpuSource given{.name = "kernel.cu",
                  .text = source,
                  .headers = {},
                  .options = {fmt::format("-DWEIR_PRECISION={}", bit_of(precision))}};
  for (const package::EmbeddedHeader& header : package::embedded_headers())
    given.headers.emplace_back("weir/" + std::string(header.name), header.text);
  return compiler->compile(given, facts.architecture);
}

bool compare(package::OpenPackage& opened, const std::string& source, Precision precision, int rows, int columns) {
  const int bytes = facts_of(precision).bytes;
  const auto kernel =
      opened.prepare({package::Backend::cuda,
                      precision,
                      {{"rows", {static_cast<double>(rows)}}, {"columns", {static_cast<double>(columns)}}},
                      1337});
  const package::Checked checked = kernel->check();
  if (!checked.faults.empty()) fail("softmax is wrong: " + checked.faults[0]);
  // As the package's setup() has it: four packs of 16 bytes per thread.
  const int threads = std::max(32, columns * bytes / 16 / 4);
  const auto loop = raw::make_kernel_loop(compile(source, precision), "softmax_held", rows, columns, threads,
                                          static_cast<std::size_t>(bytes));
  loop->run(100);
  const int runs = static_cast<int>(std::clamp(kBatch_ms * 100 / loop->run(100), 10.0, 10'000.0));
  const auto plain_us = [&] { return loop->run(runs) * 1e3 / runs; };
  const auto weir_us = [&] { return kernel->run(static_cast<std::uint64_t>(runs)).device_ns * 1e-3 / runs; };
  plain_us();
  weir_us();
  std::vector<double> plain, weir;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 2 == 0) plain.push_back(plain_us());
    weir.push_back(weir_us());
    if (round % 2 != 0) plain.push_back(plain_us());
  }
  const double ratio = median(weir) / median(plain);
  const bool is_within = std::abs(ratio - 1) <= kBar;
  fmt::print("| {:<4} | {:>5} x {:<5} | {:>5} | {:>10.3f} | {:>8.3f} | {:>6.4f} | {:<4} |\n", name_of(precision), rows,
             columns, runs, median(plain), median(weir), ratio, is_within ? "ok" : "OFF");
  std::fflush(stdout);
  return is_within;
}

}  // namespace

int main() try {
  const std::filesystem::path folder = "kernels/softmax";
  if (!std::filesystem::exists(folder / "kernel.cu"))
    fail("kernels/softmax is not here", "Run it in the root of the repository.");
  package::Package softmax;
  softmax.name = "softmax";
  softmax.folder = folder;
  softmax.parts = {{package::Form::host_source, folder / "kernel.cpp"},
                   {package::Form::cuda_source, folder / "kernel.cu"}};
  const std::filesystem::path room =
      std::filesystem::temp_directory_path() / fmt::format("weir_gpu_kernel_loop_{}", getpid());
  package::OpenOptions options;
  options.cache = room / "cache";
  options.include = room / "include";
  const auto opened = open_package(softmax, package::Backend::cuda, options);
  const std::string source = read(folder / "kernel.cu");
  fmt::print("softmax by weir bench and by a hand-written loop with events, {} rounds in turn\n\n", kRounds);
  fmt::print("| type | rows x columns | runs  | loop us    | weir us  | ratio  | bar  |\n");
  fmt::print("| ---- | ------------- | ----- | ---------- | -------- | ------ | ---- |\n");
  bool is_within = true;
  for (const auto precision : {Precision::fp32, Precision::fp16, Precision::bf16})
    for (const auto& [rows, columns] : {std::pair{1024, 1024}, {8192, 1024}, {16384, 4096}})
      is_within = compare(*opened, source, precision, rows, columns) && is_within;
  std::filesystem::remove_all(room);
  fmt::print("\nbar: medians within {:.0f} % of a hand-written loop: {}\n", kBar * 100, is_within ? "holds" : "MISSED");
  return is_within ? 0 : 1;
} catch (const weir::Error& error) {
  fmt::print(stderr, "{}\n{}\n", error.what(), error.hint);
  return 1;
}
