// weir calibrate: how much processes of identical code differ on this machine and device, kept for `weir compare`.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/state_folder.h"
#include "run/children.h"
#include "run/known_spread.h"
#include "run/pairing.h"
#include "run/rounds.h"

namespace weir::cli {
namespace {

constexpr int kLockPatienceMs = 30'000;  // for another `weir calibrate`, which holds the file for milliseconds

// Small steps are bound by the host on a GPU, full ones by the device.
struct CalibrationKind {
  const char* workload;
  const char* scale;
};
constexpr std::array kCalibrationKinds{CalibrationKind{"hetero_kernels", "small"},
                                       CalibrationKind{"hetero_kernels", "full"}, CalibrationKind{"moe", "small"},
                                       CalibrationKind{"moe", "full"}};

struct CalibrateFlags {
  std::string device = "auto", workload, scale;
  std::string processes = "10", iterations = "60", budget = "5m", seed = "1";
  std::string output;
  bool is_json = false, is_quiet = false;

  bool prints_json() const { return is_json || output == "-"; }

  void add_to(CommandSyntax syntax) {
    syntax.add("workload NAME", workload, "a step to calibrate (default: two short and two long ones)");
    syntax.add("--device NAME", device, "device whose spread is measured");
    syntax.add("--scale NAME", scale, "size of the workload");
    syntax.add("--processes N", processes, "processes of each step");
    syntax.add("--iterations N", iterations, "iterations of each process");
    syntax.add("--budget DURATION", budget, "stop after this time, once each step has five processes");
    syntax.add("--seed N", seed, "order of the steps within a round");
    syntax.add("--output,-o PATH", output,
               "document to add to (default: the one that `weir compare` reads; -: print it, and keep nothing)");
    syntax.add("--json", is_json, "print the document (weir.calibration/1), and no text");
    syntax.add("--quiet,-q", is_quiet, "print only errors");
  }

  std::vector<std::vector<std::string>> runs() const {
    std::vector<std::vector<std::string>> runs;
    const auto add = [&](const std::string& name, const std::string& size) {
      runs.push_back({"run", name, "--device", device, "--iterations", iterations, "--no-trace", "--no-check"});
      if (!size.empty()) runs.back().insert(runs.back().end(), {"--scale", size});
    };
    if (!workload.empty()) {
      add(workload, scale);
      return runs;
    }
    for (const CalibrationKind& kind : kCalibrationKinds)
      if (scale.empty() || scale == kind.scale) add(kind.workload, kind.scale);
    if (runs.empty())
      reject(fmt::format("--scale {}: small and full are calibrated", scale), "Name a workload as well.");
    return runs;
  }
};

std::string spread_row(const CalibratedStep& step) {
  const auto workload = step.key.find("workload");
  return fmt::format("  {:<22} {:<12} {:>10} {:>9} {:>9.2f} %\n", workload == step.key.end() ? "-" : workload->second,
                     !step.is_host_bound   ? "-"
                     : *step.is_host_bound ? "host-bound"
                                           : "device-bound",
                     format_duration(step.latency_ns), step.processes, 100 * std::expm1(step.deviation));
}

int execute_calibrate(const CalibrateFlags& flags) {
  if (flags.device == "sim" || flags.device.starts_with("sim:"))
    reject("simulated devices need no calibration: their processes agree", "Name the device that you measure on.");
  const bool is_kept = flags.output != "-";
  const std::filesystem::path file = flags.output.empty() ? calibration_file() : std::filesystem::path(flags.output);
  if (file.empty()) reject("neither HOME nor XDG_STATE_HOME is set", "Use -o FILE.");
  if (is_kept) load_calibration(file);  // rejects before minutes of work
  const std::vector<std::vector<std::string>> runs = flags.runs();
  RoundsPlan plan;
  plan.sides = runs.size();
  plan.max_rounds = static_cast<std::size_t>(
      number_within("--processes", flags.processes, static_cast<std::int64_t>(kFewestForSpread), 1000));
  plan.seed = static_cast<std::uint64_t>(number_within("--seed", flags.seed, 0, INT64_MAX));
  number_within("--iterations", flags.iterations, 5, 1'000'000);
  const auto budget_ns = static_cast<std::int64_t>(seconds_of("--budget", flags.budget) * 1e9);

  const std::atomic<bool>& stop = catch_interrupts();
  const std::int64_t begun_ns = now_ns();
  std::vector<std::vector<ResultPoint>> found(runs.size());
  bool is_interrupted = false;
  {
    ProgressLine line(flags.is_quiet);
    RoundsControl control;
    control.run = [&](std::size_t side, std::size_t round) {
      line.show(fmt::format("{}, process", runs[side][1]), static_cast<int>(round) + 1,
                static_cast<int>(plan.max_rounds));
      ChildRequest request;
      request.arguments = runs[side];
      const auto document = child_document(request, stop);
      if (!document) return false;
      const ResultFile result = parse_results(*document, runs[side][1]);
      found[side].insert(found[side].end(), result.points.begin(), result.points.end());
      return true;
    };
    plan.min_rounds = kFewestForSpread;
    control.is_enough = [&](std::size_t) { return now_ns() - begun_ns > budget_ns; };
    is_interrupted = run_rounds(plan, control, stop).end == RoundsEnd::interrupted;
  }
  std::string table =
      fmt::format("  {:<22} {:<12} {:>10} {:>9} {:>11}\n", "step", "kind", "median", "processes", "spread");
  std::size_t known = 0;
  std::optional<FileLock> lock;
  std::vector<CalibratedStep> steps;
  if (is_kept) {
    make_folders(file.parent_path());
    // Read again: another `weir calibrate` may have added to it in these minutes.
    lock.emplace(file, kLockPatienceMs);
    steps = load_calibration(file);
  }
  for (const std::vector<ResultPoint>& points : found) {
    if (points.empty()) continue;
    const auto step = calibrated_step(pool_repeats(points).at(0), wall_time());
    if (!step) continue;
    ++known;
    remember(*step, steps);
    table += spread_row(*step);
  }
  if (known == 0 && is_interrupted) return kExitInterrupted;
  if (known == 0) fail("no step has latencies that could be compared", "Name another workload.");
  const std::string document = calibration_json(steps).dump(2) + "\n";
  if (is_kept) write_file(file, document, true);
  if (flags.prints_json()) write_json(document);
  const bool is_quiet = flags.is_quiet || flags.prints_json();
  if (!is_quiet)
    print_out("Medians of processes of identical code differ by this much (standard deviation):\n{}Kept in {}\n", table,
              file.string());
  if (!is_interrupted) return 0;
  if (!is_quiet)
    print_out("Interrupted: {} of {} steps had the {} processes that it takes\n", known, found.size(),
              kFewestForSpread);
  return kExitInterrupted;
}

}  // namespace

CliCommand calibrate() {
  return command("calibrate", "measure how much processes of identical code differ, for `weir compare`",
                 execute_calibrate);
}

}  // namespace weir::cli
