#include "cli/compare_flags.h"

#include <fmt/format.h>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "report/text/comparison.h"

namespace weir::cli {
void CompareFlags::add_to(CommandSyntax syntax) {
  syntax.add("--threshold PERCENT", threshold, "Smallest change of the median that matters");
  syntax.add("--strict", is_strict, "Exit 4 if a pair is too noisy to judge");
  syntax.add("--format", format, "Output format").one_of({"text", "markdown", "json"});
  syntax.add("--output FILE", output, "Write the report to a file");
  syntax.add("--force", is_forced, "Replace files that exist");
  ci.add_to(syntax);
  syntax.footer("Exit code: 0 nothing slower, 2 bad input, 3 something slower, 4 (--strict) too noisy to say.");
}

CompareOptions CompareFlags::options() const {
  CompareOptions options;
  options.threshold = share_of("--threshold", threshold);
  if (!output.empty()) check_writable(output, is_forced);
  ci.check(is_forced, format == "json" && output.empty());
  return options;
}

int CompareFlags::print(const Comparison& comparison, const char* tool) const {
  std::string report;
  if (format == "json") {
    // Paths may hold invalid UTF-8, which must not prevent the report.
    report = comparison_json(comparison, is_strict).dump(2) + "\n";
  } else {
    report = format == "markdown" ? comparison_markdown(comparison) : comparison_text(comparison);
  }
  if (output.empty()) {
    format == "json" ? write_json(report) : write_out(report);
  } else {
    write_file(output, report, is_forced);
    print_out("{} ({})\n", verdict_line(comparison), output);
  }
  ci.report(
      judge(comparison, tool, is_strict), [&](std::size_t most) { return comparison_markdown(comparison, most); },
      is_forced);
  return exit_code(comparison, is_strict);
}

}  // namespace weir::cli
