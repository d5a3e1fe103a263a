// weir report: results, traces and other documents as one self-contained HTML page, or as its JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/private_folder.h"
#include "base/units.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/report_page.h"
#include "cli/trace_flags.h"
#include "report/text/fields.h"
#include "report/text/sections.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFindingsShown = 5;  // shown in the terminal; the page has all

struct ReportFlags {
  std::vector<std::string> paths;
  std::vector<std::string> outputs;
  std::string title, history, baseline;
  std::string max_spans = "2000000";
  std::vector<std::string> collectives;
  std::string window = "steady";
  bool is_json = false, is_forced = false, is_quiet = false;

  bool prints_json() const { return is_json || std::find(outputs.begin(), outputs.end(), "-") != outputs.end(); }

  void add_to(CommandSyntax syntax) {
    syntax.add("paths PATH", paths,
               "results, sweeps, comparisons, bench and overlap folders, traces, other documents of weir, "
               "or folders of them (-: standard input)");
    syntax.add("--output,-o PATH", outputs,
               "the page, or its document if it ends in .json; repeatable (default: report.html)");
    syntax.add("--json", is_json, "print the document (weir.report/2), and no text");
    syntax.add("--title TEXT", title, "title of the page (default: names of the paths)");
    syntax.add("--baseline PATH", baseline, "result, sweep, trace or folder to compare with: what changed comes first");
    syntax.add("--history PATH", history, "show the series of this history as well");
    syntax.add("--max-spans N", max_spans, "most spans that are drawn of all traces together");
    syntax.add("--collective PATTERN", collectives,
               "kernels of traces whose name has this in it communicate; * stands for any text, repeatable");
    syntax.add("--window PART", window, kWindowHelp);
    syntax.add("--force,-f", is_forced, "replace files that exist");
    syntax.add("--quiet,-q", is_quiet, "print nothing");
    syntax.footer(
        "Exit code: 0 written, 2 a path that was named could not be used (the page of the others is written). `weir "
        "compare` turns a verdict into an exit code.");
  }
};

bool is_document(const std::string& path) { return path.ends_with(".json"); }

// Where the page and its document go.
std::vector<std::string> files_of(const ReportFlags& flags) {
  std::vector<std::string> files;
  std::copy_if(flags.outputs.begin(), flags.outputs.end(), std::back_inserter(files),
               [](const std::string& path) { return path != "-"; });
  if (files.empty() && !flags.prints_json())
    files.push_back(default_output("report", ".html", earlier_output(flags.is_forced)).string());
  return files;
}

// "results and 2 more"
std::string title_of(const ReportFlags& flags) {
  if (!flags.title.empty()) return flags.title;
  if (flags.paths.empty()) return "Weir report";
  fs::path first = flags.paths.front() == "-" ? "standard input" : fs::path(flags.paths.front()).lexically_normal();
  if (!first.has_filename()) first = first.parent_path();
  const std::string name = first.filename() == "." || first.empty() ? "this folder" : first.filename().string();
  return flags.paths.size() == 1 ? name : fmt::format("{} and {} more", name, flags.paths.size() - 1);
}

void check_outputs(const ReportFlags& flags, const std::vector<std::string>& files) {
  const std::string reason = why_no_page();
  std::error_code status;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const char* other : {".md", ".txt", ".pdf", ".png", ".svg", ".csv"})
      if (files[i].ends_with(other))
        reject(fmt::format("-o {}: a report is not written in this format", files[i]),
               "Name the page report.html, or its document report.json.");
    if (!is_document(files[i]) && !reason.empty())
      reject(reason,
             "Build it where there is (cmake says so), or write the document alone with -o report.json: a complete "
             "program makes the page of the same files.");
    check_writable(files[i], flags.is_forced);
    for (std::size_t other = 0; other < i; ++other)
      if (fs::weakly_canonical(files[i], status) == fs::weakly_canonical(files[other], status))
        reject(fmt::format("-o {}: is named twice", files[i]), "Give them two names.");
  }
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
  if (!flags.is_quiet && !flags.prints_json()) print_out("Written to {} ({})\n", path, format_bytes(text.size()));
}

int execute_report(const ReportFlags& flags) {
  if (flags.paths.empty() && flags.history.empty())
    reject("nothing to report on", "Name results, sweeps, traces or folders of them; or --history FILE.");
  const std::vector<std::string> files = files_of(flags);
  check_outputs(flags, files);
  // What is reported on is read more than once, which standard input cannot be.
  std::optional<PrivateFolder> kept;
  std::vector<std::string> paths;
  for (const std::string& path : flags.paths) {
    paths.push_back(path);
    if (path != "-") continue;
    if (kept) reject("-: standard input is named twice", "Name a file.");
    catch_interrupts();  // before there is a temporary folder
    paths.back() = (kept.emplace().path() / "standard_input").string();
    write_file(paths.back(), read_file(input_path(path)), false);
  }
  const std::optional<MadeReport> made =
      report_document({paths, title_of(flags), flags.baseline, flags.history,
                       static_cast<std::size_t>(number_within("--max-spans", flags.max_spans, 1, 100'000'000)),
                       patterns_of("--collective", flags.collectives), window_named(flags.window), &catch_interrupts(),
                       flags.is_quiet});
  if (!made) return kExitInterrupted;
  const Json& document = made->document;
  if (flags.prints_json()) {
    write_json(to_text(document));
  } else if (!flags.is_quiet) {
    print_out("{}\n", verdict_text(document));
  }
  for (const std::string& file : files)
    write_output(flags, file, is_document(file) ? to_text(document) : report_html(document));
  return made->is_complete ? 0 : static_cast<int>(Fault::input);
}

}  // namespace

CliCommand report() {
  return command("report", "put results, traces and other documents into one HTML page, the verdict first",
                 execute_report);
}

}  // namespace weir::cli
