// weir.amd_compare/1: two cases and their hardware queues.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kQueueRows = 16;
constexpr std::size_t kKernelRows = 8;

std::string spaced(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string count_or_unknown(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  return value ? fmt::format("{:.0f}", *value) : "not known";
}

// A value with its unit: 1.20 ms, 3.1 k/s, 4.00 MiB/s, 12.5 %.
std::string value_with_unit(double value, std::string_view unit) {
  if (unit == "ns") return format_duration(value);
  if (unit == "1/s") return format_quantity(value) + "/s";
  if (unit == "B/s") return format_bytes(static_cast<std::uint64_t>(std::clamp(value, 0.0, 1e18))) + "/s";
  if (unit == "1") return fmt::format("{:.1f} %", 100 * value);
  if (unit == "queues") return fmt::format("{:.0f}", value);
  return fmt::format("{:.2f}", value);
}

// Without "per second", which the value next to it shows.
std::string value_interval(const Json& interval, std::string_view unit) {
  const auto ends = fields::interval(interval);
  if (!ends) return "-";
  std::string low = value_with_unit(ends->first, unit), high = value_with_unit(ends->second, unit);
  for (std::string* text : {&low, &high})
    if (text->ends_with("/s")) text->resize(text->size() - 2);
  return fmt::format("[{}, {}]", low, high);
}

// Prints one remark for both sides where they are equal.
void add_both(const std::string& what, const std::string& a, const std::string& b, ReportSection& section) {
  const auto add_line = [&](const char* who, const std::string& text) {
    if (!text.empty()) section.remark("{}{}{}", who, what, text);
  };
  if (a == b) return add_line("A and B", a);
  add_line("A", a);
  add_line("B", b);
}

void add_reason_line(const Json& json, const char* key, const std::string& what, ReportSection& section) {
  const Json& reason = at(json, {key});
  if (reason.is_string()) section.remark("{}: {}.", what, fields::text(reason, {}));
}

std::string priorities_text(const Json& side) {
  std::map<std::string, int> counts;
  int unknown = 0;
  for (const Json& queue : list(side, {"queues", "list"})) {
    const Json& priority = at(queue, {"priority"});
    if (priority.is_string()) {
      ++counts[fields::text(priority, {})];
    } else {
      ++unknown;
    }
  }
  std::string text;
  for (const char* name : {"high", "normal", "low"})
    if (const auto found = counts.find(name); found != counts.end())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", found->second, name);
  if (unknown > 0) text += fmt::format("{}{} not known", text.empty() ? "" : ", ", unknown);
  return text.empty() ? "-" : text;
}

ReportSection sides_section(const Json& document) {
  ReportSection section{"What each did"};
  ReportTable& table = section.table({{"", true}, {"A", true}, {"B", true}});
  const auto row = [&](const char* name, const auto& text) {
    table.rows.push_back({name, text(at(document, {"a"})), text(at(document, {"b"}))});
  };
  row("compute queues", [](const Json& side) { return count_or_unknown(side, {"queues", "compute"}); });
  row("copy queues", [](const Json& side) { return count_or_unknown(side, {"queues", "copy"}); });
  row("priorities", priorities_text);
  row("launches", [](const Json& side) { return count_or_unknown(side, {"launches"}); });
  row("barriers", [](const Json& side) { return count_or_unknown(side, {"barriers"}); });
  row("copies", [](const Json& side) { return count_or_unknown(side, {"copies"}); });
  row("copied", [](const Json& side) {
    const auto bytes = number(side, {"copied_bytes"});
    return bytes ? format_bytes(static_cast<std::uint64_t>(std::max(0.0, *bytes))) : std::string("not known");
  });
  row("observed", [](const Json& side) {
    const auto time = number(side, {"observed_ns"});
    return time ? format_duration(*time) : std::string("-");
  });
  const auto add_line = [&](const char* what, std::initializer_list<const char*> keys) {
    const auto reason = [&](const char* side) {
      const std::string text = string(at(document, {side}), keys);
      return text.empty() ? text : text + ".";
    };
    add_both(what, reason("a"), reason("b"), section);
  };
  add_line(", compute queues: ", {"queues", "compute_reason"});
  add_line(", copy queues: ", {"queues", "copy_reason"});
  add_line(", barriers: ", {"barriers_reason"});
  add_line(", copies: ", {"copies_reason"});
  for (const auto& [key, letter] : {std::pair("a", "A"), std::pair("b", "B")})
    for (const Json& note : list(document, {key, "notes"}))
      if (note.is_string()) section.remark("{}: {}", letter, fields::text(note, {}));
  return section;
}

ReportTable compared_queue_table(const Json& side, const char* letter) {
  ReportTable table{{{fmt::format("queue of {}", letter), true},
                     {"kind", true},
                     {"priority", true},
                     {"packets"},
                     {"streams"},
                     {"launches"},
                     {"seen in", true}},
                    {},
                    ""};
  const Json& queues = list(side, {"queues", "list"});
  for (const Json& queue : first(queues, kQueueRows))
    table.rows.push_back({text(queue, {"label"}), text(queue, {"kind"}), text(queue, {"priority"}),
                          text(queue, {"ring_packets"}), text(queue, {"streams"}), text(queue, {"launches"}),
                          text(queue, {"seen_in"})});
  if (queues.size() > kQueueRows) table.after = fmt::format("and {} more", queues.size() - kQueueRows);
  return table;
}

ReportSection compared_queues_section(const Json& document) {
  ReportSection section{"Queues"};
  const Json& queues = at(document, {"queues"});
  const std::string relation = text(queues, {"relation"});
  std::string shared = "cannot say";
  if (at(queues, {"shared"}).is_array()) {
    const std::size_t count = list(queues, {"shared"}).size();
    shared = count == 0 ? fmt::format("none; {} of A alone, {} of B alone", count_or_unknown(queues, {"only_a"}),
                                      count_or_unknown(queues, {"only_b"}))
                        : fmt::format("{}; {} of A alone, {} of B alone", count, count_or_unknown(queues, {"only_a"}),
                                      count_or_unknown(queues, {"only_b"}));
  }
  section.fact("shared", shared);
  section.fact("because", text(queues, {"reason"}));
  if (const auto equal = number(queues, {"equal_addresses"});
      equal && *equal > 0 && relation != "same_process" && relation != "same_input")
    section.fact("equal rings", "{:.0f}: addresses of two processes that are equal mean nothing", *equal);
  if (const auto slots = number(queues, {"common_slots"}))
    section.fact("common slots",
                 "{:.0f} hardware slots had queues of both; at which time each had them is not compared", *slots);
  for (const auto& [key, letter] : {std::pair("a", "A"), std::pair("b", "B")}) {
    ReportTable table = compared_queue_table(at(document, {key}), letter);
    section.add_unless_empty(std::move(table));
  }
  return section;
}

ReportSection kernels_section(const Json& document) {
  ReportSection section{"Kernels"};
  const Json& kernels = at(document, {"kernels"});
  section.fact("distinct", "{} in A, {} in B, {} in both by name", count_or_unknown(kernels, {"a"}),
               count_or_unknown(kernels, {"b"}), count_or_unknown(kernels, {"common"}));
  ReportTable classes{{{"class", true}, {"launches of A"}, {"time"}, {"launches of B"}, {"time"}}};
  for (const Json& row : list(kernels, {"classes"})) {
    const auto time = [&](const char* side) {
      const auto ns = number(row, {side, "total_ns"});
      return ns ? format_duration(*ns) : std::string("-");
    };
    classes.rows.push_back(
        {text(row, {"class"}), text(row, {"a", "launches"}), time("a"), text(row, {"b", "launches"}), time("b")});
  }
  section.add_unless_empty(std::move(classes));
  for (const auto& [key, letter] : {std::pair("top_a", "A"), std::pair("top_b", "B")}) {
    ReportTable table{{{"launches"}, {"time"}, {"both", true}, {fmt::format("kernel of {}", letter), true}}};
    const Json& top = list(kernels, {key});
    for (const Json& kernel : first(top, kKernelRows)) {
      const auto time = number(kernel, {"total_ns"});
      table.rows.push_back({text(kernel, {"count"}), time ? format_duration(*time) : "-",
                            is_true(kernel, {"is_common"}) ? "yes" : "", text(kernel, {"name"})});
    }
    section.add_unless_empty(std::move(table));
  }
  add_reason_line(kernels, "reason", "Names", section);
  return section;
}

std::string claim_text(const Json& row) {
  const std::string claim = text(row, {"claim"});
  return claim == "a_more" ? "A more" : claim == "b_more" ? "B more" : spaced(claim);
}

std::string ratio_b_to_a(const Json& row) {
  const auto ratio = number(row, {"ratio"});
  return ratio ? fmt::format("B/A {}", format_ratio(*ratio)) : "";
}

ReportSection quantities_section(const Json& document) {
  ReportSection section{"Compared, with 95 % intervals"};
  ReportTable& table =
      section.table({{"quantity", true}, {"", true}, {"value"}, {"interval", true}, {"difference", true}});
  for (const Json& row : list(document, {"quantities"})) {
    const std::string unit = text(row, {"unit"});
    std::string name = text(row, {"quantity"});
    if (name.ends_with("_ns")) name.resize(name.size() - 3);
    if (name == "copied_bytes_rate") name = "bytes_copied";
    for (const auto& [key, letter] : {std::pair("a", "A"), std::pair("b", "B")}) {
      const auto value = number(row, {key, "value"});
      table.rows.push_back({key[0] == 'a' ? spaced(name) : fmt::format("  {}", text(row, {"statistic"})), letter,
                            value ? value_with_unit(*value, unit) : "-",
                            value_interval(at(row, {key, "interval"}), unit),
                            key[0] == 'a' ? claim_text(row) : ratio_b_to_a(row)});
    }
    add_reason_line(row, "reason", spaced(name), section);
  }
  const auto p = number(document, {"largest_p"});
  section.remarks.insert(
      section.remarks.begin(),
      fmt::format("Rates are counted over stretches of time (A {}, B {}). A difference is claimed where the intervals "
                  "do not overlap and p (Mann-Whitney, widened for correlation in time, Holm) is below {:g}.",
                  number(document, {"a", "stretch_ns"}) ? format_duration(*number(document, {"a", "stretch_ns"})) : "-",
                  number(document, {"b", "stretch_ns"}) ? format_duration(*number(document, {"b", "stretch_ns"})) : "-",
                  p.value_or(0)));
  const auto meaning = [&](const char* side) {
    return fmt::format("a launch counts {}; a pause is {}.", text(document, {side, "launch_time"}),
                       text(document, {side, "pause_time"}));
  };
  add_both(": ", meaning("a"), meaning("b"), section);
  return section;
}

ReportSection expected_section(const Json& document) {
  ReportSection section{"Expected by the roadmap, and observed"};
  for (const Json& row : list(document, {"expected"})) {
    const std::string reason = string(row, {"reason"});
    section.fact(text(row, {"side"}), "expected {}; observed {}: {}{}", text(row, {"expected"}),
                 text(row, {"observed"}), spaced(text(row, {"outcome"})), reason.empty() ? "" : " (" + reason + ")");
  }
  return section;
}

std::string number_text(const Json& number) {
  const std::string unit = text(number, {"unit"});
  const auto value = fields::number(number, {"value"});
  const Json &bound = at(number, {"bound"}), &reason = at(number, {"reason"});
  std::string text = fields::text(number, {"what"}) + ": ";
  if (bound.is_string()) text += fields::text(bound, {}) + " ";
  text += value ? value_with_unit(*value, unit) : "not known";
  if (at(number, {"interval"}).is_array()) text += " " + value_interval(at(number, {"interval"}), unit);
  if (reason.is_string()) text += " (" + fields::text(reason, {}) + ")";
  return text;
}

ReportSection verdict_section(const Json& document) {
  ReportSection section{"Preemption: which strategy fits A, urgent, beside B"};
  const Json& verdict = at(document, {"verdict"});
  const Json& strategy = at(verdict, {"strategy"});
  section.fact("verdict", strategy.is_string() ? spaced(fields::text(strategy, {})) : "cannot say");
  section.fact("because", text(verdict, {"because"}));
  section.fact("premise", text(verdict, {"premise"}));
  section.fact("by", "rules over the numbers below; no preemption was measured");
  for (const Json& each : list(verdict, {"strategies"})) {
    const std::string name = spaced(text(each, {"strategy"}));
    section.fact(name, "{}: {}", spaced(text(each, {"fit"})), text(each, {"because"}));
    section.fact("  rule", text(each, {"rule"}));
    for (const Json& number : list(each, {"numbers"})) section.fact("  number", number_text(number));
  }
  return section;
}

}  // namespace

TextReport amd_compare_report(const Json& document) {
  TextReport report{"Two cases and their hardware queues"};
  for (const auto& [key, letter] : {std::pair("a", "A"), std::pair("b", "B")}) {
    const Json& side = at(document, {key});
    report.open("{}: {} ({})", letter, text(side, {"name"}), joined(list(side, {"basis"})));
  }
  report.sections = {sides_section(document),      compared_queues_section(document), kernels_section(document),
                     quantities_section(document), expected_section(document),        verdict_section(document)};
  return report;
}

DocumentText text_list::amd_compare(const Json& document) { return amd_compare_report(document); }

}  // namespace weir
