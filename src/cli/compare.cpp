// weir compare: reads result files, compares, prints, and turns the verdict into the exit code.
#include "run/compare.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/command.h"
#include "report/comparison.h"
#include "run/load.h"

namespace weir::cli {

CliCommand compare();

namespace {

struct CompareFlags {
  std::string baseline;
  std::vector<std::string> tests;
  std::string threshold = "5%";
  std::string format = "text";
  std::string output;
  bool is_strict = false;
  bool is_forced = false;
};

double threshold_of(const CompareFlags& flags) {
  double threshold = 0;
  try {
    threshold = parse_fraction(flags.threshold);
  } catch (const Error& error) {
    reject(fmt::format("--threshold {}: {}", flags.threshold, error.what()), error.hint);
  }
  // At 0 nothing could ever be the same; beyond 1 a run twice as slow would pass.
  if (threshold <= 0 || threshold > 1)
    reject(fmt::format("--threshold {}: out of range", flags.threshold), "Choose more than 0 % and at most 100 %.");
  return threshold;
}

int run_compare(const CompareFlags& flags) {
  CompareOptions options;
  options.threshold = threshold_of(flags);
  if (!flags.output.empty()) check_writable(flags.output, flags.is_forced);

  const ResultFile baseline = load_results(flags.baseline);
  std::vector<ResultFile> tests;
  for (const std::string& test : flags.tests) tests.push_back(load_results(test));
  const Comparison comparison = compare_results(baseline, tests, options);

  std::string report;
  if (flags.format == "json") {
    // Paths may hold bytes that are not UTF-8; they must not stop the report.
    report = comparison_json(comparison, flags.is_strict).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } else {
    report = flags.format == "markdown" ? comparison_markdown(comparison) : comparison_text(comparison);
  }
  if (flags.output.empty()) {
    fmt::print("{}", report);
  } else {
    write_file(flags.output, report, flags.is_forced);
    fmt::print("{} ({})\n", verdict_line(comparison), flags.output);
  }
  return exit_code(comparison, flags.is_strict);
}

std::function<int()> configure_compare(CLI::App& app) {
  const auto flags = std::make_shared<CompareFlags>();
  app.add_option("--baseline", flags->baseline, "Result, sweep or folder to compare with")
      ->required()
      ->type_name("FILE");
  app.add_option("--test", flags->tests, "One or more results, sweeps or folders to judge")
      ->required()
      ->expected(1, -1)
      ->type_name("FILE");
  app.add_option("--threshold", flags->threshold, "Smallest change of the median that matters")
      ->capture_default_str()
      ->type_name("PERCENT");
  app.add_flag("--strict", flags->is_strict, "Exit 4 if a pair is too noisy to judge");
  app.add_option("--format", flags->format, "How to tell it")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "markdown", "json"}));
  app.add_option("--output", flags->output, "Write the report to a file")->type_name("FILE");
  app.add_flag("--force", flags->is_forced, "Replace the file if it exists");
  app.footer("Exit code: 0 nothing slower, 2 bad input, 3 something slower, 4 (--strict) too noisy to say.");
  return [flags] { return run_compare(*flags); };
}

}  // namespace

CliCommand compare() {
  return {"compare", "Say whether a run is slower, faster or the same as its baseline", configure_compare};
}

}  // namespace weir::cli
