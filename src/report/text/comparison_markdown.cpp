// A comparison as Markdown, suitable for a comment on a pull request.
#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/text_gate.h"
#include "base/units.h"
#include "report/text/comparison.h"

namespace weir {
namespace {

constexpr std::size_t kMaxOpen = 10;     // pairs, and remarks, that are not folded
constexpr std::size_t kReserve = 1'000;  // for the closing text
constexpr std::size_t kLongestName = 300, kLongestRemark = 600;
constexpr double kShareOfRows = 0.75;  // of the space; remarks get the rest

Markdown cut(std::string_view text, std::size_t most) {
  const std::string_view whole = whole_characters(text, most);
  return Markdown(whole) + (whole.size() < text.size() ? Markdown::literal("...") : Markdown());
}

Markdown name(std::string_view text) { return cut(text, kLongestName); }

// The order in which readers should see them.
int rank_of(const PairComparison& pair) {
  switch (pair.verdict) {
    case Verdict::slower:
      return pair.failure.empty() ? 1 : 0;
    case Verdict::ambiguous:
      return 2;
    case Verdict::not_comparable:
      return 3;
    case Verdict::faster:
      return 4;
    case Verdict::same:
      return 5;
  }
  return 5;
}

// The rows of one pair, which are kept together or left out together.
Markdown rows_of(const PairComparison& pair) {
  if (pair.metrics.empty())
    return Markdown::format("| {} | - | - | - | - | - | - | **{}** |\n", name(pair.label),
                            pair.failure.empty() || pair.verdict != Verdict::slower ? name_of(pair.verdict) : "failed");
  Markdown rows;
  for (const MetricComparison& metric : pair.metrics) {
    const bool is_loud = metric.verdict == Verdict::slower || metric.verdict == Verdict::faster;
    const std::string unit = metric.metric == "throughput" && !metric.unit.empty() ? " " + metric.unit : "";
    rows += Markdown::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n", name(pair.label), name(metric.metric),
        name(value_text(metric, metric.baseline_median) + unit), name(value_text(metric, metric.test_median) + unit),
        metric.ratio ? format_ratio(*metric.ratio) : "-", interval_text(metric), name(p_text(metric)),
        is_loud ? Markdown::format("**{}**", name_of(metric.verdict)) : Markdown(name_of(metric.verdict)));
  }
  return rows;
}

std::vector<Markdown> remarks_of(const TestComparison& test, const std::vector<const PairComparison*>& pairs) {
  std::vector<Markdown> remarks;
  const auto say = [&](const std::string& about, const std::string& text) {
    remarks.push_back(
        Markdown::format("- {}{}{}\n", name(about), about.empty() ? "" : ": ", cut(text, kLongestRemark)));
  };
  for (const PairComparison* pair : pairs) {
    if (!pair->failure.empty()) say(pair->label, pair->failure);
    for (const MetricComparison& metric : pair->metrics)
      if (!metric.reason.empty()) say(fmt::format("{}, {}", pair->label, metric.metric), metric.reason);
    for (const std::string& note : pair->notes) say(pair->label, note);
  }
  for (const std::string& note : test.notes) say("", note);
  for (const LonePoint& point : test.baseline_only) say("only in the baseline: " + point.label, point.nearest);
  for (const LonePoint& point : test.test_only) say("only in the test: " + point.label, point.nearest);
  return remarks;
}

// Text that grows up to a limit and counts what did not fit.
class Page {
 public:
  explicit Page(std::size_t most) : max_(most) {}

  void allow(double share) {
    limit_ = max_ < kReserve ? 0 : static_cast<std::size_t>(static_cast<double>(max_ - kReserve) * share);
  }
  // Headings and ends of folds: they are small, and the text would be broken without them.
  void put(const Markdown& text) { text_ += text; }
  bool has_room() const { return text_.size() < limit_; }
  bool put_if_room(const Markdown& text) {
    if (text_.size() + text.size() > limit_) return false;
    text_ += text;
    return true;
  }
  const std::string& text() const { return text_.text(); }

 private:
  std::size_t max_, limit_ = 0;
  Markdown text_;
};

constexpr const char* kTableHead =
    "| run | metric | baseline | test | ratio | 95 % interval | p | verdict |\n"
    "| --- | --- | ---: | ---: | ---: | --- | ---: | --- |\n";

Markdown fold(const std::string& summary) { return Markdown::format("\n<details><summary>{}</summary>\n\n", summary); }
constexpr const char* kEndOfFold = "\n</details>\n";

struct LeftOut {
  std::size_t pairs = 0, remarks = 0;
};

void put_test(Page& page, const TestComparison& test, const std::string& baseline, LeftOut& left_out) {
  std::vector<const PairComparison*> pairs;
  for (const PairComparison& pair : test.pairs) pairs.push_back(&pair);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const PairComparison* a, const PairComparison* b) { return rank_of(*a) < rank_of(*b); });
  const auto same = std::find_if(pairs.begin(), pairs.end(),
                                 [](const PairComparison* pair) { return pair->verdict == Verdict::same; });
  const bool is_folded = pairs.size() > kMaxOpen;
  page.allow(kShareOfRows);
  if (!page.has_room()) {
    left_out.pairs += pairs.size();
    return;
  }
  page.put(Markdown::format("\n## {} against {}\n", name(test.name), name(baseline)));
  const auto put_rows = [&](auto from, auto to) {
    page.put(Markdown::literal(kTableHead));
    for (; from != to; ++from)
      if (!page.put_if_room(rows_of(**from))) ++left_out.pairs;
  };
  if (!is_folded) {
    page.put(Markdown::literal("\n"));
    put_rows(pairs.begin(), pairs.end());
  } else {
    if (same != pairs.begin()) page.put(Markdown::literal("\n"));
    if (same != pairs.begin()) put_rows(pairs.begin(), same);
    if (same != pairs.end()) {
      page.put(fold(fmt::format("{} the same", pairs.end() - same)));
      put_rows(same, pairs.end());
      page.put(Markdown::literal(kEndOfFold));
    }
  }
  page.allow(1);
  const std::vector<Markdown> remarks = remarks_of(test, pairs);
  if (remarks.empty()) return;
  const bool has_fold = remarks.size() > kMaxOpen;
  page.put(has_fold ? fold(fmt::format("{} remarks", remarks.size())) : Markdown::literal("\n"));
  for (const Markdown& remark : remarks)
    if (!page.put_if_room(remark)) ++left_out.remarks;
  if (has_fold) page.put(Markdown::literal(kEndOfFold));
}

}  // namespace

std::string comparison_markdown(const Comparison& comparison, std::size_t most) {
  Page page(most);
  page.put(Markdown::format("# Comparison: {}\n\n{}\n", verdict_line(comparison), method_line(comparison)));
  LeftOut left_out;
  for (const TestComparison& test : comparison.tests) put_test(page, test, comparison.baseline, left_out);
  if (left_out.pairs + left_out.remarks > 0)
    page.put(Markdown::format(
        "\n**Cut:** {} runs and {} remarks are left out, because GitHub takes {} characters here. `weir compare "
        "--json` has them all.\n",
        left_out.pairs, left_out.remarks, most));
  return page.text();
}

}  // namespace weir
