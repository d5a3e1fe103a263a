#include "cli/document_output.h"

#include <fmt/format.h>

#include "base/console.h"

namespace weir::cli {

void DocumentOutput::add_to(CommandSyntax syntax) {
  syntax.add("--json", is_json, "the document, for programs");
  syntax.add("--format NAME", format, "form for people (default: text; .md in --output is markdown, .json is --json)")
      .one_of({"text", "markdown"});
  syntax.add("--output,-o PATH", output, "write the report to this file (-: standard output)");
  syntax.add("--force,-f", is_forced, "replace files that exist");
  syntax.add("--quiet,-q", is_quiet, "print only the report");
}

bool DocumentOutput::wants_json() const { return is_json || (format.empty() && output.ends_with(".json")); }

bool DocumentOutput::wants_markdown() const {
  return !wants_json() && (format == "markdown" || (format.empty() && output.ends_with(".md")));
}

void DocumentOutput::check_output() const {
  if (has_file()) check_writable(output, is_forced);
}

void DocumentOutput::print(const Json& document, const std::function<std::string()>& text,
                           const std::function<std::string()>& markdown) const {
  const std::string printed = wants_json() ? to_text(document) : wants_markdown() ? markdown() : text();
  if (has_file()) {
    write(output, printed);
  } else {
    wants_json() ? write_json(printed) : write_out(printed);
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
  if (!is_quiet && !prints_json()) print_out("Written to {}\n", path);
}

void DocumentFile::add_to(CommandSyntax syntax, const std::string& help) {
  syntax.add("--json", is_json, "print the document, and no text");
  syntax.add("--output,-o PATH", output, help);
}

std::string input_path(const std::string& typed) { return typed == "-" ? "/dev/stdin" : typed; }

}  // namespace weir::cli
