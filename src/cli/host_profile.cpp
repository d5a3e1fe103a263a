#include "cli/host_profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "base/error.h"
#include "cli/perf_recorder.h"
#include "report/text/svg.h"

namespace weir::cli {
namespace {

constexpr double kWantedNs = 2e9;  // about 2,000 samples of a thread that is always busy
constexpr std::int64_t kLongestNs = 30'000'000'000;
constexpr int kMostIterations = 200'000;

// As many iterations as take two seconds, but no fewer than were asked for. Virtual time says nothing of ours: then as
// many as may be, and the clock ends it.
int iterations_for(const Result& result, const RunRequest& request, bool is_virtual) {
  const auto& intervals = result.samples.interval_ns;
  if (is_virtual) return std::max(request.iterations, kMostIterations);
  if (!intervals || intervals->empty()) return request.iterations;
  const double each = std::max(1.0, median(*intervals));
  return std::max(request.iterations, static_cast<int>(std::min<double>(kMostIterations, kWantedNs / each)));
}

}  // namespace

HostProfile profile_host(Device& device, const RunRequest& request, const RunContext& context,
                         const RunControl& control, const Result& result, const std::string& file, bool is_forced) {
  if (result.status != "complete")
    return {nullptr, fmt::format("the run before it was {}", result.status == "failed" ? "a failure" : result.status)};
  PerfRecorder perf(::getpid());
  if (!perf.is_on()) return {nullptr, perf.reason()};

  RunRequest again = request;
  again.checks_output = again.traces = false;
  const bool is_virtual = device.info().is_virtual;
  again.iterations = iterations_for(result, request, is_virtual);
  const std::int64_t limit_ns = is_virtual ? static_cast<std::int64_t>(kWantedNs) : kLongestNs;
  again.warmup = std::max(1, request.warmup);
  RunControl watched = control;
  std::atomic<bool> is_over = false;  // read and set by this thread alone: progress is told by the one that measures
  enum class Phase { before, on, after } phase = Phase::before;
  std::int64_t begun_ns = 0, measured_ns = 0;
  watched.stop = &is_over;
  watched.progress = [&](std::string_view name, int done, int total) {
    if (phase == Phase::before && name == "warm-up" && done == total) {
      perf.enable();
      phase = Phase::on;
      begun_ns = now_ns();
    } else if (phase == Phase::on && name == "measure") {
      const bool is_last = done >= total;
      if (control.is_stopped() || now_ns() - begun_ns > limit_ns) is_over.store(true, std::memory_order_relaxed);
      if (is_last || is_over.load(std::memory_order_relaxed)) {
        measured_ns = now_ns() - begun_ns;
        perf.disable();
        phase = Phase::after;
      }
    }
    if (control.progress) control.progress("host profile", done, total);
  };
  const Result second = run_workload(device, again, context, watched);
  FoldedStacks folded;
  if (!perf.finish(folded)) return {nullptr, perf.reason()};
  if (second.status == "failed") return {nullptr, fmt::format("the profiled run failed: {}", second.failure)};
  const std::vector<FoldedStack> stacks = folded.stacks();
  if (stacks.empty())
    return {nullptr, "perf saw no sample: the host was hardly busy, or the run too short. Try more --iterations"};
  const bool is_picture = file.ends_with(".svg");
  write_file(file,
             is_picture ? flame_svg(stacks, fmt::format("{}, {} streams on {}: the host at {} Hz", result.workload,
                                                        result.streams, device.info().name, PerfRecorder::kHz))
                        : folded_text(stacks),
             is_forced);
  return {{{"file", file},
           {"samples", folded.samples()},
           {"left_out", folded.left_out()},
           {"stacks", stacks.size()},
           {"hz", PerfRecorder::kHz},
           {"measured_ns", measured_ns},
           {"latency_ratio", second.latency_ns && result.latency_ns && result.latency_ns->p50 > 0
                                 ? Json(second.latency_ns->p50 / result.latency_ns->p50)
                                 : Json()}},
          ""};
}

}  // namespace weir::cli
