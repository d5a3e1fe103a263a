// What GitHub Actions reads from a step: annotations, outputs. Knows GitHub's escaping rules and limits.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/plain_text.h"
#include "base/text_gate.h"
#include "report/figures/judgement.h"

namespace weir {
namespace {

constexpr std::size_t kLongestTitle = 200, kLongestMessage = 4'000;

std::string cut(const std::string& text, std::size_t most) {
  const std::string_view whole = whole_characters(text, most);
  return whole.size() == text.size() ? text : std::string(whole) + "...";
}

// ::error title=weir compare%3A moe is slower::latency 4.21 us -> ...
std::string annotation(const char* kind, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", kind, for_github_property(cut(title, kLongestTitle)),
                     for_github_message(cut(message, kLongestMessage)));
}

std::string words_of(CaseStatus finding) {
  const bool is_verdict =
      finding == CaseStatus::slower || finding == CaseStatus::ambiguous || finding == CaseStatus::faster;
  return fmt::format("{}{}", is_verdict ? "is " : "", name_of(finding));
}

// The worst of these findings, at most `most`.
std::string annotations_of(const Judged& judged, const char* kind, std::initializer_list<CaseStatus> findings,
                           std::size_t most) {
  std::vector<const Judgement*> chosen;
  for (const JudgedSuite& suite : judged.suites)
    for (const Judgement& judgement : suite.cases)
      if (std::find(findings.begin(), findings.end(), judgement.finding) != findings.end())
        chosen.push_back(&judgement);
  std::stable_sort(chosen.begin(), chosen.end(), [](const Judgement* a, const Judgement* b) {
    return a->finding != b->finding ? a->finding < b->finding : a->severity > b->severity;
  });
  const std::size_t shown = chosen.size() > most ? most - 1 : chosen.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i)
    text += annotation(kind, fmt::format("{}: {} {}", judged.tool, chosen[i]->label, words_of(chosen[i]->finding)),
                       chosen[i]->text);
  if (shown < chosen.size())
    text += annotation(kind, fmt::format("{}: and {} more", judged.tool, chosen.size() - shown),
                       fmt::format("GitHub shows {} of a kind: the summary of the step has all of them. In all: {}.",
                                   kMaxAnnotations, judged.summary));
  return text;
}

}  // namespace

std::string github_annotations(const Judged& judged) {
  const auto counts = judged.counts();
  const auto lone = counts.find(CaseStatus::lone);
  std::string text = annotations_of(judged, "error", {CaseStatus::failed, CaseStatus::slower}, kMaxAnnotations);
  // One warning is reserved for all points without a partner: one warning each would displace the ambiguous ones.
  text += annotations_of(judged, "warning", {CaseStatus::ambiguous}, kMaxAnnotations - (lone == counts.end() ? 0 : 1));
  if (lone != counts.end())
    text += annotation("warning", fmt::format("{}: {} not compared", judged.tool, lone->second),
                       "Only one side has them, so nothing is known about them. The report names them.");
  return text + annotations_of(judged, "notice", {CaseStatus::faster}, kMaxAnnotations);
}

std::string github_outputs(const Judged& judged) {
  const auto counts = judged.counts();
  std::string text = fmt::format("verdict={}\nexit_code={}\n", name_of(judged.verdict()), judged.exit_code);
  for (const CaseStatus finding : {CaseStatus::failed, CaseStatus::slower, CaseStatus::ambiguous, CaseStatus::lone,
                                   CaseStatus::faster, CaseStatus::same}) {
    const auto found = counts.find(finding);
    text += fmt::format("{}={}\n", name_of(finding), found == counts.end() ? 0 : found->second);
  }
  return text;
}

std::string github_excerpt(const std::string& markdown, std::size_t most) {
  constexpr std::string_view kRemark = "\n**Cut:** GitHub takes no more here. The report's file has the rest.\n";
  if (markdown.size() <= most) return markdown;
  const std::size_t room = most < kRemark.size() ? 0 : most - kRemark.size();
  const std::size_t end = markdown.rfind('\n', room);
  return markdown.substr(0, end == std::string::npos || end > room ? 0 : end) + std::string(kRemark);
}

}  // namespace weir
