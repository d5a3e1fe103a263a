#include "cli/compare_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "report/text/comparison.h"

namespace weir::cli {
namespace {

double threshold_of(const std::string& text) {
  double threshold = 0;
  try {
    threshold = parse_fraction(text);
  } catch (const Error& error) {
    reject(fmt::format("--threshold {}: {}", text, error.what()), error.hint);
  }
  // At 0 nothing could ever be the same; beyond 1 a run twice as slow would pass.
  if (threshold <= 0 || threshold > 1)
    reject(fmt::format("--threshold {}: out of range", text), "Choose more than 0 % and at most 100 %.");
  return threshold;
}

}  // namespace

void CompareFlags::add_to(CommandSyntax syntax) {
  syntax.add("--threshold", threshold, "Smallest change of the median that matters").takes("PERCENT");
  syntax.add("--strict", is_strict, "Exit 4 if a pair is too noisy to judge");
  syntax.add("--format", format, "How to tell it").one_of({"text", "markdown", "json"});
  syntax.add("--output", output, "Write the report to a file").takes("FILE");
  syntax.add("--force", is_forced, "Replace files that exist");
  ci.add_to(syntax);
  syntax.footer("Exit code: 0 nothing slower, 2 bad input, 3 something slower, 4 (--strict) too noisy to say.");
}

CompareOptions CompareFlags::options() const {
  CompareOptions options;
  options.threshold = threshold_of(threshold);
  if (!output.empty()) check_writable(output, is_forced);
  ci.check(is_forced, format == "json" && output.empty());
  return options;
}

int CompareFlags::tell(const Comparison& comparison, const char* tool) const {
  std::string report;
  if (format == "json") {
    // Paths may hold bytes that are not UTF-8; they must not stop the report.
    report = comparison_json(comparison, is_strict).dump(2) + "\n";
  } else {
    report = format == "markdown" ? comparison_markdown(comparison) : comparison_text(comparison);
  }
  if (output.empty()) {
    fmt::print("{}", ci.printable(report, format == "json"));
  } else {
    write_file(output, report, is_forced);
    fmt::print("{} ({})\n", verdict_line(comparison), output);
  }
  ci.tell(
      judge(comparison, tool, is_strict), [&](std::size_t most) { return comparison_markdown(comparison, most); },
      is_forced);
  return exit_code(comparison, is_strict);
}

}  // namespace weir::cli
