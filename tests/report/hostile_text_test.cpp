// Documents of every kind whose strings are hostile, in every form that a document can be written in: each form is
// judged by the rules of its sink. A new form is one row of kForms.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text_gate.h"
#include "measure/folded_stacks.h"
#include "report/figures/figures.h"
#include "report/figures/judgement.h"
#include "report/text/comparison.h"
#include "report/text/documents.h"
#include "report/text/fields.h"
#include "report/text/step_text.h"
#include "report/text/svg.h"
#include "support/result_documents.h"
#include "support/sink_rules.h"

namespace weir::testing {
namespace {

std::optional<DocumentText> text_of(const Json& document) {
  TextFunction* const function = text_function(fields::text(document, {"schema"}));
  return function == nullptr ? std::nullopt : std::optional(function(document));
}

std::optional<std::string> as_text(const Json& document) {
  const auto text = text_of(document);
  if (!text) return std::nullopt;
  const auto* const report = std::get_if<TextReport>(&*text);
  return report != nullptr ? report_text(*report) : std::get<std::string>(*text);
}

std::optional<std::string> as_markdown(const Json& document) {
  if (document["schema"] == schemas::trace_comparison) return trace_comparison_markdown(document);
  const auto text = text_of(document);
  const auto* const report = text ? std::get_if<TextReport>(&*text) : nullptr;
  return report != nullptr ? std::optional(report_markdown(*report)) : std::nullopt;
}

template <std::string (*write)(std::span<const FigureRow>)>
std::optional<std::string> as_figures(const Json& document) {
  if (!has_figures(document)) return std::nullopt;
  return write(figures_of(document, "a.json"));
}

Judged judged(const Json& document) { return judge_bench(document, false, 1); }
bool is_bench(const Json& document) { return document["schema"] == schemas::bench; }

struct Form {
  const char* name;
  std::optional<std::string> (*write)(const Json& document);
  SinkRule rule;
};

const Form kForms[] = {
    {"text", as_text, terminal_rule},
    {"markdown", as_markdown, markdown_rule},
    {"openmetrics", as_figures<results_openmetrics>, openmetrics_rule},
    {"csv", as_figures<results_csv>, csv_rule},
    {"samples", as_figures<samples_csv>, csv_rule},
    {"svg",
     [](const Json& document) {
       return document["schema"] == schemas::preempt ? std::optional(preempt_svg(document)) : std::nullopt;
     },
     xml_rule},
    {"junit",
     [](const Json& document) {
       return is_bench(document) ? std::optional(junit_xml(judged(document))) : std::nullopt;
     },
     xml_rule},
    {"github",
     [](const Json& document) {
       return is_bench(document) ? std::optional(github_annotations(judged(document))) : std::nullopt;
     },
     runner_rule},
};

std::vector<Json> documents() {
  std::vector<Json> all = {result_document(), bench_document(), overlap_document(), preempt_document()};
  for (const char* folder : {"/tests/report/page/documents", "/tests/data/v0.1"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(WEIR_SOURCE_DIR) + folder))
      all.push_back(read_json(entry.path()));
  return all;
}

TEST(HostileText, every_form_of_every_document_is_safe) {
  std::map<std::string, int> written;
  for (const Json& document : documents())
    for (const Form& form : kForms) {
      // Some texts are for documents of this version only: those of 0.1 are renewed before.
      try {
        if (!form.write(document)) continue;
      } catch (const std::exception&) {
        continue;
      }
      for (std::size_t first = 0; first < hostile_texts().size(); first += 2) {
        const auto text = form.write(poisoned(document, first));
        ASSERT_TRUE(text.has_value());
        ++written[form.name];
        ASSERT_EQ(form.rule(*text), "") << form.name << " of " << document["schema"] << " from " << first;
      }
    }
  for (const Form& form : kForms) EXPECT_GT(written[form.name], 0) << form.name;
}

TEST(HostileText, comparisons_are_safe_in_every_form) {
  for (const std::string& text : hostile_texts()) {
    Comparison comparison;
    comparison.baseline = text;
    TestComparison& test = comparison.tests.emplace_back();
    test.name = text;
    test.notes = {text};
    test.baseline_only = {{text, text, text}};
    for (const Verdict verdict : kVerdicts) {
      PairComparison& pair = test.pairs.emplace_back();
      pair.label = pair.failure = text;
      pair.verdict = verdict;
      pair.notes = {text};
      MetricComparison& metric = pair.metrics.emplace_back();
      metric.metric = "throughput";
      metric.unit = metric.reason = text;
      metric.verdict = verdict;
    }
    EXPECT_EQ(terminal_rule(comparison_text(comparison)), "");
    EXPECT_EQ(markdown_rule(comparison_markdown(comparison)), "") << comparison_markdown(comparison);
    const Judged cases = judge(comparison, "weir compare", true);
    EXPECT_EQ(xml_rule(junit_xml(cases)), "");
    EXPECT_EQ(runner_rule(github_annotations(cases)), "") << github_annotations(cases);
    EXPECT_EQ(runner_rule(github_outputs(cases)), "");
  }
}

TEST(HostileText, pictures_of_timelines_and_stacks_are_safe) {
  for (const std::string& text : hostile_texts()) {
    Timeline timeline;
    timeline.processes = {{0, text, -1}};
    timeline.devices = {{0, 0, text}};
    timeline.streams = {{0, 7, text}};
    timeline.queues = {{3, 0, text}};
    timeline.names = {text};
    Span span;
    span.name = 0;
    span.queue = 3;
    span.started_ns = 10;
    span.ended_ns = 1'000;
    timeline.spans = {span};
    SvgOptions options;
    options.title = text;
    EXPECT_EQ(xml_rule(timeline_svg(timeline, options)), "");
    EXPECT_EQ(xml_rule(flame_svg({{text + ";" + text, 3}}, text)), "");
    FoldedStacks stacks;
    stacks.add("weir 12\n\t3a f" + text + "+0x1 (/usr/lib/" + text + ")\n\n");
    stacks.end();
    EXPECT_EQ(terminal_rule(folded_text(stacks.stacks())), "");
  }
}

}  // namespace
}  // namespace weir::testing
