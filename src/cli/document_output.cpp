#include "cli/document_output.h"

#include <fmt/format.h>

#include "base/console.h"

namespace weir::cli {

void DocumentOutput::add_to(CommandSyntax syntax) {
  syntax.add("--report", report, "output format").one_of({"text", "markdown", "json"});
  syntax.add("--output,-o FILE", output, "write the report to this file");
  syntax.add("--force,-f", is_forced, "replace files that exist");
  syntax.add("--quiet,-q", is_quiet, "no progress, no names of files written");
}

void DocumentOutput::check_output() const {
  if (!output.empty()) check_writable(output, is_forced);
}

void DocumentOutput::print(const Json& document, const std::function<std::string()>& text,
                           const std::function<std::string()>& markdown) const {
  const std::string printed = report == "json" ? to_text(document) : report == "markdown" ? markdown() : text();
  if (output.empty()) {
    report == "json" ? write_json(printed) : write_out(printed);
  } else {
    write(output, printed);
  }
}

void DocumentOutput::print(const Json& document, const TextReport& report) const {
  print(document, [&] { return report_text(report); }, [&] { return report_markdown(report); });
}

void DocumentOutput::write(const std::string& path, const std::string& text) const {
  write_file(path, text, is_forced);
  report_written(path);
}

void DocumentOutput::report_written(const std::string& path) const {
  if (!is_quiet) print_out("Written to {}\n", path);
}

}  // namespace weir::cli
