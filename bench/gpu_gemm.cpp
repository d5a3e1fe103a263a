// Weir's large_gemm_only against a plain cuBLAS loop, in one process and in alternating rounds. The bar: at least 95 %
// of the loop's throughput.
#include "gpu_gemm.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "measure/statistics.h"
#include "step/workload/workload.h"
#include "submit/placement.h"
#include "submit/submitter.h"

namespace {

using namespace weir;

constexpr double kBar = 0.95;
constexpr int kRounds = 15;

double milliseconds(const std::function<void()>& iterate) {
  constexpr int kIterations = 3;
  const std::int64_t started = now_ns();
  for (int i = 0; i < kIterations; ++i) iterate();
  return static_cast<double>(now_ns() - started) * 1e-6 / kIterations;
}

bool compare(Device& device, int streams) {
  const Workload& workload = workload_named("large_gemm_only");
  const Params params(workload.params, Scale::full, {});
  const Step step = workload.build(params, streams);
  const Placement placement = place(step, "natural");
  const auto products = raw::make_products(streams, static_cast<int>(params.integer("size")));
  const auto session = device.prepare(step, placement, {});
  const auto submitter = make_submitter(parse_submit("inline", streams), step, placement, *session);
  const auto ours = [&] {
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
  };
  const auto theirs = [&] { products->iterate(); };
  milliseconds(ours);
  milliseconds(theirs);
  std::vector<double> weir, plain, ratios;
  for (int round = 0; round < kRounds; ++round) {
    const bool is_first = round % 2 == 0;
    if (is_first) weir.push_back(milliseconds(ours));
    plain.push_back(milliseconds(theirs));
    if (!is_first) weir.push_back(milliseconds(ours));
    ratios.push_back(plain.back() / weir.back());
  }
  const double tflop = step.work();
  fmt::print("| {:>7} | {:>14.2f} | {:>12.2f} | {:>5.3f} | {:<4} |\n", streams, tflop / median(plain) * 1e3,
             tflop / median(weir) * 1e3, median(ratios), median(ratios) >= kBar ? "ok" : "LOW");
  std::fflush(stdout);
  return median(ratios) >= kBar;
}

}  // namespace

int main() try {
  const std::unique_ptr<Device> device = open_device("cuda:0", {});
  fmt::print("large_gemm_only (fp32, 8192^3 per stream) on {}, {} rounds in turn\n\n", device->info().model, kRounds);
  fmt::print("| streams | cuBLAS TFLOP/s | weir TFLOP/s | ratio | bar  |\n");
  fmt::print("| ------- | -------------- | ------------ | ----- | ---- |\n");
  bool is_within = true;
  for (const int streams : {1, 4, 16}) is_within = compare(*device, streams) && is_within;
  fmt::print("\nbar: weir >= {:.2f} of a plain cuBLAS loop: {}\n", kBar, is_within ? "holds" : "MISSED");
  return is_within ? 0 : 1;
} catch (const weir::Error& error) {
  fmt::print(stderr, "{}\n{}\n", error.what(), error.hint);
  return 1;
}
