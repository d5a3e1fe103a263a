// What GitHub Actions reads from a step: annotations, outputs. Knows GitHub's escaping rules and limits.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/plain_text.h"
#include "report/figures/judgement.h"

namespace weir {
namespace {

constexpr std::size_t kLongestTitle = 200, kLongestMessage = 4'000;

std::string cut(const std::string& text, std::size_t most) {
  const std::string_view whole = whole_characters(text, most);
  return whole.size() == text.size() ? text : std::string(whole) + "...";
}

// "##[" would be a command by itself if the line were ever printed inside another.
std::string plain(const std::string& text, std::string_view kept) {
  return without_commands(without_controls(as_utf8(text), ' ', kept));
}

// The order does not matter: each character is examined once.
std::string escaped(const std::string& text, bool is_property) {
  std::string safe;
  for (const char c : text) {
    const bool is_special = c == '%' || c == '\r' || c == '\n' || (is_property && (c == ':' || c == ','));
    if (is_special) {
      fmt::format_to(std::back_inserter(safe), "%{:02X}", static_cast<unsigned char>(c));
    } else {
      safe += c;
    }
  }
  return safe;
}

// ::error title=weir compare%3A moe is slower::latency 4.21 us -> ...
std::string annotation(const char* kind, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", kind, escaped(cut(plain(title, ""), kLongestTitle), true),
                     escaped(cut(plain(message, "\n"), kLongestMessage), false));
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

std::string without_commands(std::string_view text, bool is_json) {
  std::string safe;
  safe.reserve(text.size());
  bool is_beginning = true;  // only blanks since the beginning of the line
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("##[")) {
      safe += is_json ? "\\u0023#[" : "# #[";
      i += 2;
      is_beginning = false;
      continue;
    }
    // This never happens in JSON, whose lines begin with brackets and quotes.
    if (is_beginning && rest.starts_with("::")) safe += '|';
    const char c = text[i];
    is_beginning = c == '\n' || c == '\r' || (is_beginning && (c == ' ' || c == '\t' || c == '\v' || c == '\f'));
    safe += c;
  }
  return safe;
}

}  // namespace weir
