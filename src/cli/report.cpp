// weir report: results, traces and other documents as one HTML page that explains itself, or as its JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/options.h"
#include "base/plain_text.h"
#include "base/units.h"
#include "cli/default_output.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/report_page.h"
#include "report/text/fields.h"
#include "report/text/wrap.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFindings = 5;  // that the terminal shows; the page has all

struct Flags {
  std::vector<std::string> paths;
  std::string output, json, title, history, baseline;
  std::string max_spans = "2000000";
  bool is_forced = false, is_quiet = false;
};

// Only the JSON where that alone was asked for.
std::string html_file(const Flags& flags) {
  if (!flags.output.empty() || !flags.json.empty()) return flags.output;
  return default_output("report", ".html", earlier_output(flags.is_forced)).string();
}

std::size_t max_spans_of(const Flags& flags) {
  const auto value = parse_integer(flags.max_spans);
  if (!value || *value < 1 || *value > 100'000'000)
    reject(fmt::format("--max-spans {}: not a number from 1 to 100000000", flags.max_spans));
  return static_cast<std::size_t>(*value);
}

// "results and 2 more"
std::string title_of(const Flags& flags) {
  if (!flags.title.empty()) return flags.title;
  if (flags.paths.empty()) return "Weir report";
  fs::path first = fs::path(flags.paths.front()).lexically_normal();
  if (!first.has_filename()) first = first.parent_path();
  const std::string name = first.filename() == "." || first.empty() ? "this folder" : first.filename().string();
  return flags.paths.size() == 1 ? name : fmt::format("{} and {} more", name, flags.paths.size() - 1);
}

void check_outputs(const Flags& flags, const std::string& html) {
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

std::string plain(const std::string& text) { return without_controls(text, '?'); }

std::string verdict_text(const Json& document) {
  const std::string headline = plain(fields::text(document, {"verdict", "headline"}));
  std::string text = wrapped(headline, 0) + "\n" + findings_text(document, kMostFindings, true);
  const std::size_t count = fields::at(document, {"verdict", "findings"}).size();
  if (count > kMostFindings) text += fmt::format("    {} more in the report\n", count - kMostFindings);
  return text;
}

void write(const Flags& flags, const std::string& path, const std::string& text) {
  write_file(path, text, flags.is_forced);
  if (!flags.is_quiet) fmt::print("Written to {} ({})\n", plain(path), format_bytes(text.size()));
}

int execute(const Flags& flags) {
  if (flags.paths.empty() && flags.history.empty())
    reject("nothing to report on", "Name results, sweeps, traces or folders of them; or --history FILE.");
  const std::string html = html_file(flags);
  check_outputs(flags, html);
  const std::optional<Json> made = report_document(
      {flags.paths, title_of(flags), flags.baseline, flags.history, max_spans_of(flags), &catch_interrupts()});
  if (!made) return kExitInterrupted;
  const Json& document = *made;
  if (!flags.is_quiet) fmt::print("{}\n", verdict_text(document));
  if (!flags.json.empty()) write(flags, flags.json, to_text(document));
  if (!html.empty()) write(flags, html, report_html(document));
  return 0;
}

}  // namespace

CliCommand report() {
  return {"report", "put results, traces and other documents into one HTML page, the verdict first",
          [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            syntax
                .add("paths", flags->paths,
                     "results, sweeps, comparisons, bench and overlap folders, traces, other documents of weir, "
                     "or folders of them")
                .takes("PATH");
            syntax.add("--output,-o", flags->output, "the page (default: report.html; none with --json alone)")
                .takes("FILE");
            syntax.add("--json", flags->json, "write the report's document (weir.report/1) to this file").takes("FILE");
            syntax.add("--title", flags->title, "title of the page (default: names of the paths)");
            syntax
                .add("--baseline", flags->baseline,
                     "result, sweep or folder to compare the results with: what changed comes first")
                .takes("PATH");
            syntax.add("--history", flags->history, "show the series of this history as well").takes("FILE");
            syntax.add("--max-spans", flags->max_spans, "most spans that are drawn of all traces together");
            syntax.add("--force,-f", flags->is_forced, "replace files that exist");
            syntax.add("--quiet,-q", flags->is_quiet, "no verdict, no names of files written");
            syntax.footer(
                "Exit code: 0 written, 2 nothing could be used. `weir compare` turns a verdict into an exit code.");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
