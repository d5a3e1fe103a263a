// The block "regressions" of weir.bench/2: what a comparison of bench runs found.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kMaxReasons = 8, kMaxNamedCases = 4;  // in a summary; regressions.md has them all

// "+12.3 %"
std::string change_percent(std::optional<double> ratio) {
  return ratio ? fmt::format("{:+.1f} %", 100 * (*ratio - 1)) : std::string("-");
}

// "+7.1 .. +18.0 %"
std::string range(const Json& entry) {
  const auto ends = interval(entry, {"interval"});
  return ends ? fmt::format("{:+.1f} .. {:+.1f} %", 100 * (ends->first - 1), 100 * (ends->second - 1)) : "-";
}

std::string verdict_words(const Json& entry) {
  std::string words = text(entry, {"verdict"});
  for (char& letter : words)
    if (letter == '_') letter = ' ';
  return words;
}

// "1 slower, 3 ambiguous, 12 same"
std::string counts_text(const Json& regressions) {
  std::string words;
  const Json& counts = at(regressions, {"counts"});
  if (!counts.is_object()) return words;
  for (const auto& [name, count] : fields::members(counts)) {
    std::string plain = name;
    for (char& letter : plain)
      if (letter == '_') letter = ' ';
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", text(count, {}), plain);
  }
  return words;
}

std::string conclusion(const Json& regressions) {
  const std::string verdict = text(regressions, {"verdict"});
  if (verdict == "regressed") return "Something regressed.";
  if (verdict == "same") return "Nothing regressed.";
  return "No regression was found, but not everything could be judged.";
}

std::vector<std::string> notes_of(const Json& regressions) {
  std::vector<std::string> notes;
  for (const Json& note : list(regressions, {"notes"})) notes.push_back(text(note, {}));
  return notes;
}

// Whether only one side has times. With --filter that is most of a baseline.
bool is_one_sided(const Json& entry) {
  const std::string verdict = text(entry, {"verdict"});
  return verdict == "gone" || verdict == "new";
}

ReportTable regression_table(const Json& cases, bool has_all) {
  ReportTable table{{{"case", true}, {"verdict", true}, {"before"}, {"now"}, {"change"}, {"likely range"}}};
  for (const Json& entry : cases) {
    const std::string verdict = verdict_words(entry);
    if (!has_all && (verdict == "same" || is_one_sided(entry))) continue;
    table.rows.push_back({text(entry, {"key"}), verdict, duration(entry, {"before_ns", "p50"}),
                          duration(entry, {"after_ns", "p50"}), change_percent(number(entry, {"ratio"})),
                          range(entry)});
  }
  return table;
}

std::string thresholds(const Json& regressions) {
  const auto latency = number(regressions, {"options", "latency"}),
             accuracy = number(regressions, {"options", "accuracy"}),
             certainty = number(regressions, {"options", "certainty"});
  if (!latency || !accuracy || !certainty) return "-";
  return fmt::format("more than {:.3g} % slower with {:.4g} % certainty; an error larger by more than {:.3g}",
                     100 * *latency, 100 * *certainty, *accuracy);
}

// "gone: this run does not have it: a, b, c, d and 8 more"
std::vector<std::string> gone(const Json& cases) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Json& entry : cases)
    if (text(entry, {"verdict"}) == "gone") by_reason[text(entry, {"reason"})].push_back(text(entry, {"key"}));
  std::vector<std::string> lines;
  for (const auto& [reason, keys] : by_reason) {
    const std::size_t named = std::min(keys.size(), kMaxNamedCases);
    lines.push_back(fmt::format("gone: {}: {}", reason, fmt::join(std::span(keys).first(named), ", ")));
    if (keys.size() > named) lines.back() += fmt::format(" and {} more", keys.size() - named);
  }
  return lines;
}

std::vector<std::string> reasons(const Json& cases, std::size_t most, bool includes_gone) {
  std::vector<std::string> lines;
  std::size_t left_out = 0;
  for (const Json& entry : cases) {
    const std::string verdict = verdict_words(entry);
    if (verdict == "same" || verdict == "faster" || verdict == "new" || (verdict == "gone" && !includes_gone)) continue;
    if (lines.size() >= most && !is_true(entry, {"is_regression"})) {
      ++left_out;
      continue;
    }
    lines.push_back(fmt::format("{}: {}: {}", text(entry, {"key"}), verdict, text(entry, {"reason"})));
  }
  if (left_out > 0) lines.push_back(fmt::format("and {} more in regressions.md", left_out));
  return lines;
}

}  // namespace

std::string regression_line(const Json& entry) {
  std::string line = verdict_words(entry);
  if (number(entry, {"ratio"}))
    line =
        fmt::format("{} -> {}, {} ({}): {}", duration(entry, {"before_ns", "p50"}),
                    duration(entry, {"after_ns", "p50"}), change_percent(number(entry, {"ratio"})), range(entry), line);
  return at(entry, {"reason"}).is_string() ? fmt::format("{}: {}", line, text(entry, {"reason"})) : line;
}

ReportSection regressions_section(const Json& regressions) {
  ReportSection section{"Regressions"};
  if (!regressions.is_object()) {
    section.remark("Nothing was compared: there is no baseline (--baseline REF or FILE).");
    return section;
  }
  section.facts = {{"baseline", text(regressions, {"baseline"})},
                   {"result", fmt::format("{} {}", conclusion(regressions), counts_text(regressions))},
                   {"counts as one", thresholds(regressions)}};
  ReportTable table = regression_table(list(regressions, {"cases"}), false);
  section.add_unless_empty(std::move(table));
  section.remarks = reasons(list(regressions, {"cases"}), kMaxReasons, false);
  for (std::string& line : gone(list(regressions, {"cases"}))) section.remark(std::move(line));
  for (std::string& note : notes_of(regressions)) section.remark(std::move(note));
  return section;
}

TextReport regressions_report(const Json& regressions) {
  TextReport report{"Regressions"};
  if (!regressions.is_object()) {
    report.opening = regressions_section(regressions).remarks;
    return report;
  }
  const Json& cases = list(regressions, {"cases"});
  report.opening = {fmt::format("{} {}", conclusion(regressions), counts_text(regressions))};
  ReportSection basis{"Compared"};
  basis.facts = {{"baseline", text(regressions, {"baseline"})}, {"counts as one", thresholds(regressions)}};
  basis.remarks = notes_of(regressions);
  ReportSection all{"Cases"};
  if (cases.empty())
    all.remark("There are none on either side.");
  else
    all.tables.push_back(regression_table(cases, true));
  ReportSection why{"Why"};
  why.remarks = reasons(cases, cases.size(), true);
  if (why.remarks.empty()) why.remark("All cases are the same, faster or new.");
  ReportSection reading{"How to read this"};
  reading.remarks = {
      "before, now: medians of all samples. change: what the verdict rests on, the median of all ratios between a "
      "process of each side, each by the lower quartile of its samples; it may differ from the ratio of the medians. "
      "likely "
      "range: where the true change is, each end with the certainty asked for.",
      "ambiguous is neither good nor bad: measure again with more rounds, on a quieter machine."};
  report.sections = {basis, all, why, reading};
  return report;
}

}  // namespace weir
