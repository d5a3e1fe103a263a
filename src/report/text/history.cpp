// weir.history/2: entries, points and trends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kShownRuns = 20;
constexpr std::size_t kSparkCells = 50;
constexpr std::size_t kCommitDigits = 10;
constexpr std::size_t kMaxListed = 1'000;
constexpr std::size_t kMaxMachines = 20;  // of a fleet thousands differ, by their serial numbers
constexpr std::size_t kMaxSeries = 100;   // of more, only those that changed are shown

std::string commit_of(const Json& json) { return word(json, "commit").substr(0, kCommitDigits); }

std::string day_of(const std::string& time) { return time.substr(0, 10); }

// 2026-11-16T21:27:04Z -> 2026-11-16 21:27
std::string minute_of(std::string time) {
  if (time.size() > 10 && time[10] == 'T') time[10] = ' ';
  return time.substr(0, 16);
}

std::size_t count_of(const Json& json, const char* name) {
  return static_cast<std::size_t>(std::max(0.0, number(json, {name}).value_or(0)));
}

std::string amount(std::optional<double> value, const std::string& unit) {
  if (!value) return "-";
  return unit == "ns" ? format_duration(*value) : fmt::format("{} {}", format_quantity(*value), unit);
}

std::string amount_interval(const Json& json, const std::string& unit) {
  const auto ends = interval(json, {"interval"});
  return ends ? fmt::format("{} .. {}", amount(ends->first, unit), amount(ends->second, unit)) : "-";
}

// Half the width of the interval, relative to the median.
std::string half_width(const Json& point) {
  const auto ends = interval(point, {"interval"});
  const double middle = number(point, {"p50"}).value_or(0);
  return ends && middle > 0 ? fmt::format("+-{:.1f} %", 50 * (ends->second - ends->first) / middle) : "-";
}

// "slower by 8.1 %": for a latency how much longer, for a throughput how much less.
std::string change_words(const Json& change) {
  const double ratio = number(change, {"ratio"}).value_or(1);
  return fmt::format("{} by {:.1f} %", word(change, "verdict"), std::fabs(ratio - 1) * 100);
}

std::string commit_range(const Json& change) {
  const Json& before = at(change, {"last_before"});
  const Json& after = at(change, {"first_after"});
  const std::string from = commit_of(before), to = commit_of(after);
  const bool is_same = word(before, "commit") == word(after, "commit");
  if (from != "-" && to != "-" && !is_same) return fmt::format("between {} and {}", from, to);
  const std::string same = from != "-" && is_same ? fmt::format(", both at {}", from) : "";
  return fmt::format("between entries {} and {}{}", word(before, "entry"), word(after, "entry"), same);
}

std::string machine_words(const Json& document, const std::string& id) {
  for (const Json& machine : at(document, {"machines"}))
    if (word(machine, "id") == id) return fmt::format("{} ({})", word(machine, "label"), id);
  return id;
}

std::string words_of_add(const Json& document) {
  const std::size_t points = count_of(document, "points"), known = count_of(document, "known"),
                    failed = count_of(document, "failed");
  std::string entries;
  for (const Json& entry : at(document, {"known_entries"}))
    entries += (entries.empty() ? "" : ", ") + (entry.is_number() ? fields::text(entry, {}) : std::string("?"));
  const std::size_t probes = count_of(document, "documents");
  const std::string there = fmt::format("{} there already (entry {})", known == 1 ? "was" : "were", entries);
  if (points == 0 && probes > 0)
    return fmt::format("{} added as entry {}.", counted(probes, "probe"), word(document, "entry"));
  if (points == 0 && known == 0) return "Nothing was added: it was there already.";
  if (points == 0)
    return fmt::format("Nothing was added: {} {}.",
                       known == 1 ? "the one result" : fmt::format("all {} results", known), there);
  std::string words =
      fmt::format("{}{} added as entry {}", counted(points, "result"),
                  probes > 0 ? fmt::format(" of {}", counted(probes, "probe")) : "", word(document, "entry"));
  if (failed > 0) words += fmt::format(", {} of them failed", failed);
  if (known > 0) words += fmt::format("; {} {}", known, there);
  return words + ".";
}

TextReport add_report(const Json& document) {
  TextReport report{fmt::format("weir history: {}", word(document, "file"))};
  report.open(words_of_add(document));
  const std::string commit = word(document, "commit");
  if (!at(document, {"entry"}).is_null())
    report.open(commit == "-" ? "Commit: not known. --commit names it."
                              : fmt::format("Commit: {} ({}).", commit, word(document, "commit_basis")));
  const Json& machines = at(document, {"machines"});
  for (const Json& machine : machines) report.open("Machine: {} ({})", word(machine, "label"), word(machine, "id"));
  for (const Json& note : at(document, {"notes"}))
    if (note.is_string()) report.open("Note: " + fields::text(note, {}));
  return report;
}

TextReport list_report(const Json& document) {
  TextReport report;
  const Json& entries = at(document, {"entries"});
  report.title = fmt::format("weir history list: {}", word(document, "file"));
  std::string size;
  if (const auto bytes = number(document, {"size_bytes"}))
    size = ", " + format_bytes(static_cast<std::uint64_t>(std::max(0.0, *bytes)));
  report.open((entries.size() == 1 ? "1 entry" : fmt::format("{} entries", entries.size())) + size);
  ReportSection& section = report.section("Entries");
  ReportTable& table = section.table(
      {{"id"}, {"added", true}, {"commit", true}, {"tag", true}, {"machine", true}, {"points"}, {"failed"}});
  for (const Json& entry : first(entries, kMaxListed)) {
    const Json& machines = at(entry, {"machines"});
    std::string machine = machines.empty() ? "-" : machines[0].is_string() ? fields::text(machines[0], {}) : "-";
    if (machines.size() > 1) machine += fmt::format(" +{}", machines.size() - 1);
    table.rows.push_back({word(entry, "id"), minute_of(word(entry, "added")), commit_of(entry), word(entry, "tag"),
                          machine, word(entry, "points"),
                          count_of(entry, "failed") == 0 ? "-" : word(entry, "failed")});
  }
  if (entries.size() > kMaxListed)
    table.after = fmt::format("and {} more, which --json has", entries.size() - kMaxListed);
  ReportSection& machines = report.section("Machines");
  for (const Json& machine : at(document, {"machines"})) machines.fact(word(machine, "id"), word(machine, "label"));
  return report;
}

std::string word_of_key(const std::string& name, const std::string& value) {
  return fmt::format("{}={}", name.starts_with("param.") ? name.substr(6) : name, value);
}

// What distinguishes the points of a machine, and what they share.
class Keys {
 public:
  explicit Keys(const std::vector<const Json*>& points) {
    for (const Json* const point : points)
      for (const auto& [name, value] : fields::members(at(*point, {"key"})))
        if (name != "workload" && value.is_string()) ++counts_[{name, fields::text(value, {})}];
    for (const auto& [pair, count] : counts_)
      if (count == points.size() && pair.first != "streams") shared_.insert(pair.first);
  }
  std::string own(const Json& point) const {
    std::string words;
    for (const auto& [name, value] : fields::members(at(point, {"key"})))
      if (name != "workload" && value.is_string() && !shared_.contains(name))
        words += (words.empty() ? "" : " ") + word_of_key(name, fields::text(value, {}));
    return words;
  }
  std::string shared() const {
    std::string words;
    for (const auto& [pair, count] : counts_)
      if (shared_.contains(pair.first)) words += (words.empty() ? "" : ", ") + word_of_key(pair.first, pair.second);
    return words;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> counts_;
  std::set<std::string> shared_;
};

TextReport show_report(const Json& document) {
  const Json& entry = at(document, {"entry"});
  TextReport report{fmt::format("weir history show {}", word(entry, "id"))};
  report.open("added {}, commit {} ({}), tag {}", minute_of(word(entry, "added")), word(entry, "commit"),
              word(entry, "commit_basis"), word(entry, "tag"));
  for (const Json& machine : at(document, {"machines"})) {
    ReportSection& section = report.section(fmt::format("{} ({})", word(machine, "label"), word(machine, "id")));
    ReportTable& table =
        section.table({{"workload", true}, {"key", true}, {"latency"}, {"95 % interval"}, {"throughput"}, {"n"}});
    std::vector<const Json*> own;
    for (const Json& point : at(document, {"points"}))
      if (word(point, "machine") == word(machine, "id") && at(point, {"key"}).is_object()) own.push_back(&point);
    const Keys keys(own);
    if (!keys.shared().empty()) section.remark("All: " + keys.shared() + ".");
    for (const Json* const each : own) {
      const Json& point = *each;
      if (const std::string failure = word(point, "failure"); failure != "-")
        section.remark("Failed: {}: {}", word(point, "workload"), failure);
      const Json& latency = at(point, {"latency"});
      const Json& throughput = at(point, {"throughput"});
      table.rows.push_back({word(point, "workload"), keys.own(point), amount(number(latency, {"p50"}), "ns"),
                            amount_interval(latency, "ns"),
                            amount(number(throughput, {"p50"}), word(throughput, "unit")),
                            word(number(latency, {"p50"}) ? latency : throughput, "count")});
    }
  }
  return report;
}

// Scaled from the lowest to the highest value, so that a few percent are visible.
std::string spark_of(const Json& points) {
  std::vector<double> values;
  for (const Json& point : points)
    if (const auto median = number(point, {"p50"})) values.push_back(*median);
  if (values.size() < 2) return "-";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double least = *low, range = *high - *low;
  for (double& value : values) value = range > 0 ? 0.1 + 0.9 * (value - least) / range : 0.5;
  return fmt::format("[{}]", sparkline(values, std::min(values.size(), kSparkCells)));
}

ReportTable runs_table(const Json& series, bool is_full) {
  const Json& points = at(series, {"points"});
  const std::string unit = word(series, "unit");
  ReportTable table{{{"measured"}, {"commit"}, {"tag", true}, {"median"}, {"95 %"}, {"change", true}}};
  const std::size_t first = is_full || points.size() <= kShownRuns ? 0 : points.size() - kShownRuns;
  for (std::size_t i = first; i < points.size(); ++i) {
    std::string mark;
    for (const Json& change : at(series, {"changes"}))
      if (number(change, {"index"}) == static_cast<double>(i)) mark = change_words(change);
    const Json& point = points[i];
    table.rows.push_back({minute_of(word(point, "at")), commit_of(point), word(point, "tag"),
                          amount(number(point, {"p50"}), unit), half_width(point), mark});
  }
  if (first > 0) table.after = fmt::format("{} before, which --full shows", counted(first, "run"));
  return table;
}

void add_history_series(const Json& document, const Json& series, bool is_full, TextReport& report) {
  const Json& points = at(series, {"points"});
  const std::string unit = word(series, "unit");
  ReportSection& section = report.section(fmt::format("{} of {}", word(series, "metric"), word(series, "title")));
  section.fact("machine", machine_words(document, word(series, "machine")));
  if (!points.empty()) {
    section.fact("runs", "{}, {} to {}", points.size(), day_of(word(points[0], "at")),
                 day_of(word(points[points.size() - 1], "at")));
    section.fact("course", spark_of(points));
  }
  for (const Json& change : at(series, {"changes"})) {
    std::string sentence =
        fmt::format("{} {}: {} to {} (p {:.3f}).", change_words(change), commit_range(change),
                    amount(number(change, {"before", "p50"}), unit), amount(number(change, {"after", "p50"}), unit),
                    number(change, {"p"}).value_or(1));
    sentence[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence[0])));
    for (const Json& fact : at(change, {"explanations"}))
      sentence += fmt::format(" Changed with it: {} from {} to {}.", word(fact, "fact"), word(fact, "before"),
                              word(fact, "after"));
    section.remark(std::move(sentence));
  }
  if (const auto drift = number(series, {"drift", "change"}))
    section.remark("No step, but it drifts: {:+.1f} % from the first run to the last.", *drift * 100);
  if (const std::string reason = word(series, "changes_reason"); reason != "-")
    section.remark("Not judged: {}.", reason);
  else if (at(series, {"changes"}).empty() && !number(series, {"drift", "change"}))
    section.remark("No change.");
  for (const Json& note : at(series, {"notes"}))
    if (note.is_string()) section.remark("Note: " + fields::text(note, {}));
  if (!points.empty()) section.tables.push_back(runs_table(series, is_full));
}

void add_gate(const Json& document, TextReport& report) {
  const Json& gate = at(document, {"gate"});
  if (!gate.is_object()) return;
  ReportSection& section = report.section("Gate");
  const Json& failures = at(gate, {"failures"});
  for (const Json& failure : failures) {
    const auto index = static_cast<std::size_t>(number(failure, {"series"}).value_or(0));
    const Json& series = at(document, {"series"});
    if (index < series.size()) section.remark("Failed: {}: {}.", word(series[index], "title"), word(failure, "reason"));
  }
  if (failures.empty()) section.remark("Held: no change for the worse in the last {} runs.", word(gate, "within"));
  if (count_of(gate, "unjudged") > 0) section.remark("{} series too short to judge.", count_of(gate, "unjudged"));
}

TextReport trend_report(const Json& document, bool is_full) {
  TextReport report{fmt::format("weir history trend {}", text(document, {"selection", "workload"}))};
  const Json& series = at(document, {"series"});
  const Json& machines = at(document, {"machines"});
  report.open("{}: {} series", word(document, "file"), series.size());
  if (machines.size() > 1) {
    report.open("Measured on {} machines, each with series of its own: their numbers cannot be compared.",
                machines.size());
    for (const Json& machine : first(machines, kMaxMachines)) {
      std::string facts;
      for (const Json& fact : at(machine, {"differs_from_first"}))
        if (facts.size() < 200)
          facts += fmt::format("{}{} {} instead of {}", facts.empty() ? ": " : ", ", word(fact, "fact"),
                               word(fact, "this"), word(fact, "first"));
      report.open("{} {}{}", word(machine, "id"), word(machine, "label"), facts);
    }
  }
  if (machines.size() > kMaxMachines) report.open("and {} more, which --json has", machines.size() - kMaxMachines);
  std::size_t shown = 0;
  for (const Json& one : series) {
    const bool has_changed = !at(one, {"changes"}).empty() || !at(one, {"failed"}).empty();
    if (series.size() > kMaxSeries && (!has_changed || shown == kMaxSeries)) continue;
    add_history_series(document, one, is_full, report);
    ++shown;
  }
  if (shown < series.size())
    report.open("Shown are {} series of {}, all of which changed or failed: --machine selects others, --json has all.",
                shown, series.size());
  add_gate(document, report);
  return report;
}

}  // namespace

TextReport history_report(const Json& document, bool is_full) {
  const std::string kind = word(document, "kind");
  if (kind == "add") return add_report(document);
  if (kind == "list") return list_report(document);
  if (kind == "show") return show_report(document);
  return trend_report(document, is_full);
}

}  // namespace weir
