#include "report/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/units.h"

namespace weir {
namespace {

std::string duration(const Json& ns) { return ns.is_number() ? format_duration(ns.get<double>()) : "-"; }
std::string percent(const Json& share) {
  return share.is_number() ? fmt::format("{:.1f} %", 100 * share.get<double>()) : "-";
}
std::string ratio(const Json& value) { return value.is_number() ? format_ratio(value.get<double>()) : "-"; }
std::string bytes(const Json& value) { return value.is_number() ? format_bytes(value.get<std::uint64_t>()) : "-"; }
double number(const Json& value) { return value.is_number() ? value.get<double>() : 0; }

std::string as_sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// The longest cause first: its advice is what the reader came for.
std::vector<std::string> opening(const Json& summary) {
  std::vector<std::string> lines;
  const Json& overlap = summary["overlap"];
  if (summary["failure"].is_string()) lines.push_back("FAILED: " + summary["failure"].get<std::string>());
  if (!overlap["efficiency"].is_number()) {
    lines.emplace_back("No communication was measured.");
    return lines;
  }
  std::string first = fmt::format("{} of the communication was hidden", percent(overlap["efficiency"]));
  if (overlap["best_efficiency"].is_number())
    first += fmt::format(" ({} could be at best)", percent(overlap["best_efficiency"]));
  first += fmt::format("; {} of {} a step were exposed.", duration(overlap["exposed_ns"]),
                       duration(overlap["communication_ns"]));
  lines.push_back(first);
  if (overlap["inflation"].is_number())
    lines.push_back(fmt::format("Compute beside it took {} of what it takes alone.", ratio(overlap["inflation"])));
  const Json& steps = summary["step_ns"];
  if (steps["overlapped"].is_object() && steps["serial"].is_object()) {
    const double serial = number(steps["serial"]["p50"]), overlapped = number(steps["overlapped"]["p50"]);
    if (overlapped > 0)
      lines.push_back(fmt::format("A step takes {}; with everything on one stream {} ({}).",
                                  format_duration(overlapped), format_duration(serial),
                                  format_ratio(serial / overlapped)));
  }
  int told = 0;
  for (const Json& cause : summary["causes"]) {
    if (number(cause["share"]) < 0.1 || ++told > 3) break;
    lines.push_back(fmt::format("{} of what was exposed: {}. {}", percent(cause["share"]),
                                cause["meaning"].get<std::string>(),
                                as_sentence(cause["advice"].get<std::string>()) + "."));
  }
  for (const Json& straggler : summary["stragglers"])
    lines.push_back(fmt::format("Rank {} keeps the others waiting: {}.", straggler["rank"].get<int>(),
                                straggler["reason"].get<std::string>()));
  return lines;
}

ReportSection step_section(const Json& summary) {
  ReportSection section;
  section.title = "A step, mean over ranks and traced steps";
  const Json& overlap = summary["overlap"];
  section.facts = {{"span", duration(overlap["span_ns"]) + ", first start to last end"},
                   {"busy", duration(overlap["busy_ns"])},
                   {"idle", duration(overlap["idle_ns"])},
                   {"compute", duration(overlap["compute_ns"])},
                   {"communication", duration(overlap["communication_ns"])}};
  for (const auto& [kind, ns] : overlap["collectives"].items()) section.facts.emplace_back("  " + kind, duration(ns));
  section.facts.insert(section.facts.end(),
                       {{"copies", duration(overlap["copy_ns"])},
                        {"exposed", duration(overlap["exposed_ns"]) + ", communication while nothing else ran"},
                        {"hidden", duration(overlap["hidden_ns"])},
                        {"efficiency", percent(overlap["efficiency"]) + ", hidden of all communication"},
                        {"at best", percent(overlap["best_efficiency"]) + ", if all compute ran beside it"},
                        {"serial", percent(overlap["serial_efficiency"]) + " with everything on one stream"},
                        {"inflation", ratio(overlap["inflation"]) + ", compute beside communication over alone"}});
  return section;
}

ReportSection runs_section(const Json& summary) {
  ReportSection section;
  section.title = "Four ways to run it";
  ReportTable table;
  table.columns = {{"", true}, {"step p50"}, {"compute"}, {"communication"}, {"exposed"}, {"efficiency"}};
  const Json& ranks = summary["per_rank"];
  const auto mean = [&](const char* way, const char* field) -> Json {
    double sum = 0;
    std::size_t count = 0;
    for (const Json& rank : ranks)
      if (rank[way].is_object() && rank[way][field].is_number()) {
        sum += rank[way][field].get<double>();
        ++count;
      }
    return count == 0 ? Json(nullptr) : Json(sum / static_cast<double>(count));
  };
  const auto step = [&](const char* way) {
    const Json& found = summary["step_ns"][way];
    return found.is_object() ? duration(found["p50"]) : std::string("-");
  };
  const auto row = [&](const char* name, const char* way, const std::string& p50) {
    table.rows.push_back({name, p50, duration(mean(way, "compute_ns")), duration(mean(way, "communication_ns")),
                          duration(mean(way, "exposed_ns")), percent(mean(way, "efficiency"))});
  };
  row("overlapped", "overlapped", step("overlapped"));
  row("serial", "serial", step("serial"));
  row("compute alone", "compute_alone", "-");
  row("communication alone", "communication_alone", "-");
  table.after = "Steps by the host's clock, untraced; the rest from traced steps.";
  section.tables.push_back(std::move(table));
  return section;
}

ReportSection causes_section(const Json& summary) {
  ReportSection section;
  section.title = "Why communication was exposed";
  if (summary["causes"].empty()) {
    section.remarks.emplace_back(summary["overlap"]["exposed_ns"].is_number() ? "It was not."
                                                                              : "Not known: no step was traced.");
    return section;
  }
  ReportTable table;
  table.columns = {{"cause", true}, {"a step"}, {"share"}, {"stretches"}};
  for (const Json& cause : summary["causes"]) {
    std::string name = cause["cause"].get<std::string>();
    if (!cause["queues"].empty()) {
      name += " (queue";
      for (const Json& queue : cause["queues"]) name += fmt::format(" {}", queue.get<int>());
      name += ")";
    }
    table.rows.push_back({name, duration(cause["ns_per_step"]), percent(cause["share"]),
                          std::to_string(cause["stretches"].get<std::size_t>())});
  }
  section.tables.push_back(std::move(table));
  for (const Json& cause : summary["causes"]) {
    if (cause["worst"].empty()) continue;
    const Json& worst = cause["worst"][0];
    std::string remark = fmt::format("{}: {}; the longest {} on rank {}, step {}", cause["cause"].get<std::string>(),
                                     cause["meaning"].get<std::string>(), duration(worst["ns"]),
                                     worst["rank"].get<int>(), worst["iteration"].get<int>());
    if (worst["collective"].is_string()) remark += ", during " + worst["collective"].get<std::string>();
    if (worst["blocked"].is_string()) remark += ", before " + worst["blocked"].get<std::string>();
    section.remarks.push_back(remark + ". " + as_sentence(cause["advice"].get<std::string>()) + ".");
  }
  return section;
}

ReportSection ranks_section(const Json& summary) {
  ReportSection section;
  section.title = "Ranks";
  section.facts.emplace_back("ranks", std::to_string(summary["ranks"]["count"].get<std::size_t>()));
  if (const Json& carried = summary["ranks"]["collectives"]; carried.is_string() && !carried.get<std::string>().empty())
    section.facts.emplace_back("collectives", carried.get<std::string>());
  section.facts.emplace_back("library", summary["ranks"]["library"].get<std::string>());
  if (summary["skew"].is_object())
    section.facts.emplace_back(
        "skew", fmt::format("p50 {}, p95 {}, at most {}; clocks agree to {}", duration(summary["skew"]["p50_ns"]),
                            duration(summary["skew"]["p95_ns"]), duration(summary["skew"]["max_ns"]),
                            duration(summary["skew"]["clock_error_ns"])));
  ReportTable table;
  table.columns = {{"rank"},    {"device", true}, {"compute"},   {"comm."},
                   {"exposed"}, {"efficiency"},   {"inflation"}, {"memory"}};
  const Json& ranks = summary["per_rank"];
  const bool is_one_host =
      std::all_of(ranks.begin(), ranks.end(), [&](const Json& rank) { return rank["host"] == ranks.front()["host"]; });
  for (const Json& rank : ranks) {
    const Json& pass = rank["overlapped"];
    const auto of = [&](const char* field) { return pass.is_object() ? pass[field] : Json(nullptr); };
    // A column of its own would not fit into 80.
    const std::string device = rank["device"].get<std::string>(), host = rank["host"].get<std::string>();
    table.rows.push_back({std::to_string(rank["rank"].get<int>()), is_one_host ? device : host + " " + device,
                          duration(of("compute_ns")), duration(of("communication_ns")), duration(of("exposed_ns")),
                          percent(of("efficiency")), ratio(rank["inflation"]),
                          bytes(rank["memory"]["allocated_bytes"])});
  }
  if (is_one_host) section.facts.emplace_back("host", ranks.front()["host"].get<std::string>());
  section.tables.push_back(std::move(table));
  return section;
}

ReportSection training_section(const Json& summary) {
  ReportSection section;
  section.title = "Training";
  const Json& parameters = summary["parameters"];
  std::string text;
  for (const auto& [name, value] : parameters.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  section.facts.emplace_back("step", text);
  section.facts.emplace_back("commands", std::to_string(summary["commands_per_step"].get<std::size_t>()));
  if (summary["losses"].is_array() && !summary["losses"].empty())
    section.facts.emplace_back(
        "loss", fmt::format("{:.6g} -> {:.6g} in {} steps{}", number(summary["losses"].front()),
                            number(summary["losses"].back()), summary["losses"].size(),
                            summary["step_ns"]["serial"].is_object() ? ", serial and overlapped alike" : ""));
  else
    section.facts.emplace_back("loss", "not known: the device computes nothing");
  section.facts.emplace_back("check", summary["check"]["status"].get<std::string>());
  for (const Json& note : summary["notes"]) section.remarks.push_back(note.get<std::string>());
  return section;
}

}  // namespace

Report overlap_report(const Json& summary) {
  Report report;
  report.title = fmt::format("weir overlap {}: {} rank{} on {}", summary["name"].get<std::string>(),
                             summary["ranks"]["count"].get<std::size_t>(),
                             summary["ranks"]["count"].get<std::size_t>() == 1 ? "" : "s",
                             summary["device"]["model"].get<std::string>());
  report.opening = opening(summary);
  if (summary["status"] == "interrupted") report.opening.emplace_back("Interrupted: what there was is below.");
  report.sections = {runs_section(summary), step_section(summary), causes_section(summary), ranks_section(summary),
                     training_section(summary)};
  return report;
}

Report overlap_sweep_report(const Json& points) {
  Report report;
  report.title = "weir overlap: a sweep";
  ReportSection section;
  section.title = "Points";
  ReportTable table;
  table.columns = {{"settings", true}, {"step p50"},  {"exposed"}, {"efficiency"},
                   {"at best"},        {"inflation"}, {"memory"}};
  for (const Json& point : points) {
    std::string settings;
    for (const Json& each : point["assignments"])
      settings += fmt::format("{}{}", settings.empty() ? "" : " ", each.get<std::string>());
    if (point["failure"].is_string()) {
      section.remarks.push_back(fmt::format("FAILED: {}: {}", settings, point["failure"].get<std::string>()));
      settings += " FAILED";
    }
    const Json& summary = point["summary"];
    const Json& step = summary["step_ns"]["overlapped"];
    table.rows.push_back({settings, step.is_object() ? duration(step["p50"]) : "-",
                          duration(summary["overlap"]["exposed_ns"]), percent(summary["overlap"]["efficiency"]),
                          percent(summary["overlap"]["best_efficiency"]), ratio(summary["overlap"]["inflation"]),
                          bytes(summary["memory_bytes"])});
  }
  section.tables.push_back(std::move(table));
  report.sections.push_back(std::move(section));
  return report;
}

}  // namespace weir
