#include "cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/redact.h"
#include "cli/process.h"
#include "report/page/baseline.h"
#include "report/page/gather.h"
#include "report/page/html.h"
#include "report/page/results.h"
#include "report/page/template.h"
#include "report/text/fields.h"
#include "report/text/sections.h"

namespace weir::cli {
namespace {

constexpr std::size_t kMaxRefused = 10;

std::string refused_text(const std::vector<Json>& refused) {
  std::string text;
  for (std::size_t i = 0; i < std::min(refused.size(), kMaxRefused); ++i)
    text += fmt::format(
        "! {}\n",
        wrapped(fmt::format("{}: {}", fields::text(refused[i], {"path"}), fields::text(refused[i], {"reason"})), 2));
  if (refused.size() > kMaxRefused)
    text += fmt::format("! {} more could not be used; the report lists them\n", refused.size() - kMaxRefused);
  return text;
}

}  // namespace

std::string why_no_page() {
  if (!page::page_template().empty()) return "";
  return "this program was built without the report's page: there was no npm, or no package registry, at build time";
}

std::optional<MadeReport> report_document(const ReportRequest& request) {
  page::GatherOptions options;
  options.max_spans = request.max_spans;
  options.collectives = request.collectives;
  options.window = request.window;
  options.passed_over = request.history;
  options.baseline = request.baseline;
  ProgressLine line(request.is_quiet);
  options.progress = [&](const std::string& file) {
    line.show("reading " + file, 0, 1);
    if (request.stop != nullptr && request.stop->load(std::memory_order_relaxed)) throw Interrupted{};
  };
  page::Page page(request.title, wall_time(), run_context().command_line);
  try {
    const page::Gathered gathered = page::gather(page, {request.paths.begin(), request.paths.end()}, options);
    if (!request.baseline.empty() && !gathered.is_baseline_trace)
      page::add_baseline(page, request.baseline, gathered.measured);
    page::add_results(page, gathered.measured);
    if (!request.history.empty()) page::add_history(page, request.history, request.machines);
  } catch (const Interrupted&) {
    return std::nullopt;
  }
  line.clear();
  const std::string refused = refused_text(page.refused());
  if (!refused.empty()) write_err(refused);
  if (page.item_count() == 0)
    reject(
        "nothing to report on: no file that was given can be shown",
        "Give what `weir run`, `weir sweep`, `weir compare`, `weir bench`, `weir profile` and others write with -o.");
  MadeReport made;
  for (const Json& each : page.refused()) {
    const std::string path = fields::text(each, {"path"});
    made.is_complete &=
        path != request.baseline && std::find(request.paths.begin(), request.paths.end(), path) == request.paths.end();
  }
  // Pages are given to others.
  made.document = std::move(page).document();
  make_shareable(made.document, environment_variable("HOME").value_or(""));
  return made;
}

std::string report_html(const Json& document) { return page::html_page(page::page_template(), document); }

std::string findings_text(const Json& document, std::size_t most, bool has_advice) {
  std::string text;
  std::size_t shown = 0;
  for (const Json& finding : fields::at(document, {"verdict", "findings"})) {
    if (++shown > most) break;
    const std::string tone = fields::text(finding, {"tone"});
    const char mark = tone == "bad" ? '!' : tone == "warning" ? '*' : tone == "good" ? '+' : '-';
    text += fmt::format("  {} {}\n", mark, wrapped(fields::text(finding, {"text"}), 4));
    if (const Json& advice = fields::at(finding, {"advice"}); has_advice && advice.is_string())
      text += fmt::format("    {}\n", wrapped(fields::text(advice, {}), 4));
  }
  return text;
}

}  // namespace weir::cli
