// weir report: results, traces and other documents as one self-contained HTML page, or as its JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/report_page.h"
#include "report/text/fields.h"
#include "report/text/sections.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFindingsShown = 5;  // shown in the terminal; the page has all

struct ReportFlags {
  std::vector<std::string> paths;
  std::string output, json, title, history, baseline;
  std::string max_spans = "2000000";
  std::vector<std::string> collectives;
  bool is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("paths PATH", paths,
               "results, sweeps, comparisons, bench and overlap folders, traces, other documents of weir, "
               "or folders of them");
    syntax.add("--output,-o FILE", output, "the page (default: report.html; none with --json alone)");
    syntax.add("--json FILE", json, "write the report's document (weir.report/1) to this file");
    syntax.add("--title", title, "title of the page (default: names of the paths)");
    syntax.add("--baseline PATH", baseline, "result, sweep, trace or folder to compare with: what changed comes first");
    syntax.add("--history FILE", history, "show the series of this history as well");
    syntax.add("--max-spans", max_spans, "most spans that are drawn of all traces together");
    syntax.add("--collective PATTERN", collectives,
               "kernels of traces whose name has this in it communicate; * stands for any text, repeatable");
    syntax.add("--force,-f", is_forced, "replace files that exist");
    syntax.add("--quiet,-q", is_quiet, "no verdict, no names of files written");
    syntax.footer(
        "Exit code: 0 written, 2 a path that was named could not be used (the page of the others is written). `weir "
        "compare` turns a verdict into an exit code.");
  }
};

// Empty where only the JSON was requested.
std::string html_file(const ReportFlags& flags) {
  if (!flags.output.empty() || !flags.json.empty()) return flags.output;
  return default_output("report", ".html", earlier_output(flags.is_forced)).string();
}

// "results and 2 more"
std::string title_of(const ReportFlags& flags) {
  if (!flags.title.empty()) return flags.title;
  if (flags.paths.empty()) return "Weir report";
  fs::path first = fs::path(flags.paths.front()).lexically_normal();
  if (!first.has_filename()) first = first.parent_path();
  const std::string name = first.filename() == "." || first.empty() ? "this folder" : first.filename().string();
  return flags.paths.size() == 1 ? name : fmt::format("{} and {} more", name, flags.paths.size() - 1);
}

void check_outputs(const ReportFlags& flags, const std::string& html) {
  if (const std::string reason = why_no_page(); !html.empty() && !reason.empty())
    reject(reason,
           "Build it where there is (cmake says so), or write the document alone with --json FILE: a complete program "
           "makes the page of the same files.");
  if (!html.empty()) check_writable(html, flags.is_forced);
  if (!flags.json.empty()) check_writable(flags.json, flags.is_forced);
  std::error_code status;
  const bool are_one = !html.empty() && !flags.json.empty() &&
                       fs::weakly_canonical(html, status) == fs::weakly_canonical(flags.json, status);
  if (are_one) reject(fmt::format("--output and --json both name {}", html), "Give them two names.");
}

std::string verdict_text(const Json& document) {
  const std::string headline = fields::text(document, {"verdict", "headline"});
  std::string text = wrapped(headline, 0) + "\n" + findings_text(document, kMaxFindingsShown, true);
  const std::size_t count = fields::at(document, {"verdict", "findings"}).size();
  if (count > kMaxFindingsShown) text += fmt::format("    {} more in the report\n", count - kMaxFindingsShown);
  return text;
}

void write_output(const ReportFlags& flags, const std::string& path, const std::string& text) {
  write_file(path, text, flags.is_forced);
  if (!flags.is_quiet) print_out("Written to {} ({})\n", path, format_bytes(text.size()));
}

int execute_report(const ReportFlags& flags) {
  if (flags.paths.empty() && flags.history.empty())
    reject("nothing to report on", "Name results, sweeps, traces or folders of them; or --history FILE.");
  const std::string html = html_file(flags);
  check_outputs(flags, html);
  const std::optional<MadeReport> made =
      report_document({flags.paths, title_of(flags), flags.baseline, flags.history,
                       static_cast<std::size_t>(number_within("--max-spans", flags.max_spans, 1, 100'000'000)),
                       patterns_of("--collective", flags.collectives), &catch_interrupts()});
  if (!made) return kExitInterrupted;
  const Json& document = made->document;
  if (!flags.is_quiet) print_out("{}\n", verdict_text(document));
  if (!flags.json.empty()) write_output(flags, flags.json, to_text(document));
  if (!html.empty()) write_output(flags, html, report_html(document));
  return made->is_complete ? 0 : static_cast<int>(Fault::input);
}

}  // namespace

CliCommand report() {
  return command("report", "put results, traces and other documents into one HTML page, the verdict first",
                 execute_report);
}

}  // namespace weir::cli
