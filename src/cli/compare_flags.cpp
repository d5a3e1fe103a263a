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
  syntax.add("--threshold PERCENT", threshold, "smallest change of the median that matters");
  syntax.add("--strict", is_strict, "exit 4 if a pair is too noisy to judge");
  document.add_to(syntax);
  ci.add_to(syntax);
  syntax.footer("Exit code: 0 nothing slower, 2 bad input, 3 something slower, 4 (--strict) too noisy to say.");
}

CompareOptions CompareFlags::options() const {
  CompareOptions options;
  options.threshold = share_of("--threshold", threshold);
  document.check_output();
  ci.check(document.is_forced, document.prints_json());
  return options;
}

int CompareFlags::print(const Comparison& comparison, const char* tool) const {
  // Paths may hold invalid UTF-8, which must not prevent the report.
  const std::string report = document.wants_json()       ? comparison_json(comparison, is_strict).dump(2) + "\n"
                             : document.wants_markdown() ? comparison_markdown(comparison)
                                                         : comparison_text(comparison);
  if (document.has_file()) {
    write_file(document.output, report, document.is_forced);
    if (!document.is_quiet) print_out("{} ({})\n", verdict_line(comparison), document.output);
  } else {
    document.wants_json() ? write_json(report) : write_out(report);
  }
  ci.report(
      judge(comparison, tool, is_strict), [&](std::size_t most) { return comparison_markdown(comparison, most); },
      document.is_forced);
  return exit_code(comparison, is_strict);
}

}  // namespace weir::cli
