// weir compare: reads result files, compares, prints, and turns the verdict into the exit code.
#include "run/compare.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/compare_flags.h"
#include "cli/list.h"
#include "cli/state_folder.h"
#include "report/history/intake.h"
#include "report/history/store.h"
#include "run/known_spread.h"
#include "run/load.h"

namespace weir::cli {
namespace {

struct CompareCommandFlags {
  std::string baseline;
  std::vector<std::string> tests;
  std::string calibration, history;
  CompareFlags compare;

  void add_to(CommandSyntax syntax) {
    syntax.add("--baseline FILE", baseline, "Result, sweep or folder to compare with").required();
    syntax.add("--test FILE", tests, "One or more results, sweeps or folders to judge").required().takes_several();
    syntax.add("--calibration FILE", calibration,
               "What `weir calibrate` wrote, for files of one process (default: this machine's)");
    syntax.add("--history FILE", history, "A history whose runs show how much processes differ (weir history)");
    compare.add_to(syntax);
  }
};

// The spread between runs of the same step on the same machine, from a history. Those of the calibration come first:
// nothing else changed between its processes.
FindSpread known_spreads(const CompareCommandFlags& flags) {
  std::error_code ignored;
  if (!flags.calibration.empty() && !std::filesystem::exists(flags.calibration, ignored))
    reject(fmt::format("--calibration {}: there is no such file", flags.calibration),
           "`weir calibrate --output FILE` writes one.");
  const std::vector<CalibratedStep> steps =
      load_calibration(flags.calibration.empty() ? calibration_file() : std::filesystem::path(flags.calibration));
  std::vector<history::Point> runs;
  if (!flags.history.empty()) runs = history::Store(flags.history, history::DatabaseAccess::read).points();
  return [steps, runs, name = flags.history](const ResultPoint& baseline,
                                             const ResultPoint& test) -> std::optional<Spread> {
    if (auto spread = find_spread(steps, baseline, test)) return spread;
    const std::string machine = history::machine_of(baseline).id;
    if (machine != history::machine_of(test).id) return std::nullopt;
    std::vector<double> medians;
    for (const history::Point& run : runs)
      if (run.machine == machine && run.key == baseline.key && run.failure.empty())
        if (const auto& middle = run.latency.median ? run.latency.median : run.throughput.median)
          medians.push_back(*middle);
    return spread_of_runs(medians, fmt::format("{} runs in {}", medians.size(), name));
  };
}

int execute_compare(const CompareCommandFlags& flags) {
  const CompareOptions options = flags.compare.options();
  const ResultFile baseline = load_results(flags.baseline);
  std::vector<ResultFile> tests;
  for (const std::string& test : flags.tests) tests.push_back(load_results(test));
  return flags.compare.print(compare_results(baseline, tests, options, known_spreads(flags)), "weir compare");
}

}  // namespace

CliCommand compare() {
  return command("compare", "Say whether a run is slower, faster or the same as its baseline", execute_compare);
}

}  // namespace weir::cli
