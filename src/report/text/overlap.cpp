// weir.overlap/2: how much communication was hidden, what it cost, what blocked the rest.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"
#include "run/variable_axis.h"

namespace weir {
namespace {

using namespace fields;

std::string ratio(const Json& value) { return value.is_number() ? format_ratio(value.get<double>()) : "-"; }
double number_or_zero(const Json& value) { return value.is_number() ? value.get<double>() : 0; }

std::string as_sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// The longest cause comes first, because its advice is what the reader needs most.
std::vector<std::string> overlap_opening(const Json& summary) {
  std::vector<std::string> lines;
  const Json& overlap = at(summary, {"overlap"});
  if (at(summary, {"failure"}).is_string()) lines.push_back("FAILED: " + fields::text(summary, {"failure"}));
  if (!at(overlap, {"efficiency"}).is_number()) {
    lines.emplace_back("No communication was measured.");
    return lines;
  }
  std::string first = fmt::format("{} of the communication was hidden", percent(at(overlap, {"efficiency"})));
  if (at(overlap, {"best_efficiency"}).is_number())
    first += fmt::format(" ({} could be at best)", percent(at(overlap, {"best_efficiency"})));
  first += fmt::format("; {} of {} a step were exposed.", duration(at(overlap, {"exposed_ns"})),
                       duration(at(overlap, {"communication_ns"})));
  lines.push_back(first);
  if (at(overlap, {"inflation"}).is_number())
    lines.push_back(
        fmt::format("Compute beside it took {} of what it takes alone.", ratio(at(overlap, {"inflation"}))));
  const Json& steps = at(summary, {"step_ns"});
  if (at(steps, {"overlapped"}).is_object() && at(steps, {"serial"}).is_object()) {
    const double serial = number_or_zero(at(steps, {"serial", "p50"})),
                 overlapped = number_or_zero(at(steps, {"overlapped", "p50"}));
    if (overlapped > 0)
      lines.push_back(fmt::format("A step takes {}; with everything on one stream {} ({}).",
                                  format_duration(overlapped), format_duration(serial),
                                  format_ratio(serial / overlapped)));
  }
  if (const std::string variables = variable_words(summary); !variables.empty())
    lines.push_back(fmt::format("Run with {}.", variables));
  if (const std::string processes = processes_text(summary); !processes.empty())
    lines.push_back(processes + "; everything but step times is the first one's.");
  int listed = 0;
  for (const Json& cause : at(summary, {"causes"})) {
    if (number_or_zero(at(cause, {"share"})) < 0.1 || ++listed > 3) break;
    lines.push_back(fmt::format("{} of what was exposed: {}. {}", percent(at(cause, {"share"})),
                                fields::text(cause, {"meaning"}), as_sentence(fields::text(cause, {"advice"})) + "."));
  }
  for (const Json& straggler : at(summary, {"stragglers"}))
    lines.push_back(fmt::format("Rank {} keeps the others waiting: {}.", at(straggler, {"rank"}).get<int>(),
                                fields::text(straggler, {"reason"})));
  return lines;
}

ReportSection step_section(const Json& summary) {
  ReportSection section{"A step, mean over ranks and traced steps"};
  const Json& overlap = at(summary, {"overlap"});
  section.facts = {{"span", duration(at(overlap, {"span_ns"})) + ", first start to last end"},
                   {"busy", duration(at(overlap, {"busy_ns"}))},
                   {"idle", duration(at(overlap, {"idle_ns"}))},
                   {"compute", duration(at(overlap, {"compute_ns"}))},
                   {"communication", duration(at(overlap, {"communication_ns"}))}};
  for (const auto& [kind, ns] : fields::members(at(overlap, {"collectives"}))) section.fact("  " + kind, duration(ns));
  section.facts.insert(
      section.facts.end(),
      {{"copies", duration(at(overlap, {"copy_ns"}))},
       {"exposed", duration(at(overlap, {"exposed_ns"})) + ", communication while nothing else ran"},
       {"hidden", duration(at(overlap, {"hidden_ns"}))},
       {"efficiency", percent(at(overlap, {"efficiency"})) + ", hidden of all communication"},
       {"at best",
        percent(at(overlap, {"best_efficiency"})) + ", if compute ran beside it wherever it need not wait for it"},
       {"serial", percent(at(overlap, {"serial_efficiency"})) + " with everything on one stream"},
       {"inflation", ratio(at(overlap, {"inflation"})) + ", compute beside communication over alone"}});
  return section;
}

ReportSection runs_section(const Json& summary) {
  ReportSection section{"Four ways to run it"};
  ReportTable& table =
      section.table({{"", true}, {"step p50"}, {"compute"}, {"communication"}, {"exposed"}, {"efficiency"}});
  const Json& ranks = at(summary, {"per_rank"});
  const auto mean = [&](const char* way, const char* field) -> Json {
    double sum = 0;
    std::size_t count = 0;
    for (const Json& rank : ranks)
      if (at(rank, {way}).is_object() && at(rank, {way, field}).is_number()) {
        sum += at(rank, {way, field}).get<double>();
        ++count;
      }
    return count == 0 ? Json(nullptr) : Json(sum / static_cast<double>(count));
  };
  const auto step = [&](const char* way) {
    const Json& found = at(summary, {"step_ns", way});
    return found.is_object() ? duration(at(found, {"p50"})) : std::string("-");
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
  return section;
}

ReportSection causes_section(const Json& summary) {
  ReportSection section{"Why communication was exposed"};
  if (at(summary, {"causes"}).empty()) {
    section.remark(at(summary, {"overlap", "exposed_ns"}).is_number() ? "It was not."
                                                                      : "Not known: no step was traced.");
    return section;
  }
  ReportTable& table = section.table({{"cause", true}, {"a step"}, {"share"}, {"stretches"}});
  for (const Json& cause : at(summary, {"causes"})) {
    std::string name = fields::text(cause, {"cause"});
    if (!at(cause, {"queues"}).empty()) {
      name += " (queue";
      for (const Json& queue : at(cause, {"queues"})) name += fmt::format(" {}", queue.get<int>());
      name += ")";
    }
    table.rows.push_back({name, duration(at(cause, {"ns_per_step"})), percent(at(cause, {"share"})),
                          std::to_string(at(cause, {"stretches"}).get<std::size_t>())});
  }
  for (const Json& cause : at(summary, {"causes"})) {
    if (at(cause, {"worst"}).empty()) continue;
    const Json& worst = at(cause, {"worst"})[0];
    std::string remark = fmt::format("{}: {}; the longest {} on rank {}, step {}", fields::text(cause, {"cause"}),
                                     fields::text(cause, {"meaning"}), duration(at(worst, {"ns"})),
                                     at(worst, {"rank"}).get<int>(), at(worst, {"iteration"}).get<int>());
    if (at(worst, {"collective"}).is_string()) remark += ", during " + fields::text(worst, {"collective"});
    if (at(worst, {"blocked"}).is_string()) remark += ", before " + fields::text(worst, {"blocked"});
    section.remark(remark + ". " + as_sentence(fields::text(cause, {"advice"})) + ".");
  }
  return section;
}

ReportSection ranks_section(const Json& summary) {
  ReportSection section{"Ranks"};
  section.fact("ranks", std::to_string(at(summary, {"ranks", "count"}).get<std::size_t>()));
  if (const Json& carried = at(summary, {"ranks", "collectives"});
      carried.is_string() && !fields::text(carried, {}).empty())
    section.fact("collectives", fields::text(carried, {}));
  section.fact("library", fields::text(summary, {"ranks", "library"}));
  if (at(summary, {"skew"}).is_object())
    section.fact("skew", "p50 {}, p95 {}, at most {}; clocks agree to {}",
                 duration(at(summary, {"skew", "skew_ns", "p50"})), duration(at(summary, {"skew", "skew_ns", "p95"})),
                 duration(at(summary, {"skew", "skew_ns", "max"})), duration(at(summary, {"skew", "clock_error_ns"})));
  ReportTable& table = section.table(
      {{"rank"}, {"device", true}, {"compute"}, {"comm."}, {"exposed"}, {"efficiency"}, {"inflation"}, {"memory"}});
  const Json& ranks = at(summary, {"per_rank"});
  const bool is_one_host = std::all_of(
      ranks.begin(), ranks.end(), [&](const Json& rank) { return at(rank, {"host"}) == at(ranks.front(), {"host"}); });
  for (const Json& rank : ranks) {
    const Json& pass = at(rank, {"overlapped"});
    const auto of = [&](const char* field) { return pass.is_object() ? at(pass, {field}) : Json(nullptr); };
    // A separate column would not fit into 80.
    const std::string device = fields::text(rank, {"device"}), host = fields::text(rank, {"host"});
    table.rows.push_back({std::to_string(at(rank, {"rank"}).get<int>()), is_one_host ? device : host + " " + device,
                          duration(of("compute_ns")), duration(of("communication_ns")), duration(of("exposed_ns")),
                          percent(of("efficiency")), ratio(at(rank, {"inflation"})),
                          bytes(at(rank, {"memory", "allocated_bytes"}))});
  }
  if (is_one_host && !ranks.empty()) section.fact("host", fields::text(ranks.front(), {"host"}));
  return section;
}

ReportSection training_section(const Json& summary) {
  ReportSection section{"Training"};
  const Json& parameters = at(summary, {"parameters"});
  std::string text;
  for (const auto& [name, value] : fields::members(parameters))
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, fields::text(value, {}));
  section.fact("step", text);
  section.fact("commands", std::to_string(at(summary, {"commands_per_step"}).get<std::size_t>()));
  if (at(summary, {"losses"}).is_array() && !at(summary, {"losses"}).empty())
    section.fact("loss", "{:.6g} -> {:.6g} in {} steps{}", number_or_zero(at(summary, {"losses"}).front()),
                 number_or_zero(at(summary, {"losses"}).back()), at(summary, {"losses"}).size(),
                 at(summary, {"step_ns", "serial"}).is_object() ? ", serial and overlapped alike" : "");
  else
    section.fact("loss", "not known: the device computes nothing");
  section.fact("check", fields::text(summary, {"check", "status"}));
  for (const Json& note : at(summary, {"notes"})) section.remark(fields::text(note, {}));
  return section;
}

}  // namespace

TextReport overlap_report(const Json& summary) {
  TextReport report;
  report.title = fmt::format("weir overlap {}: {} rank{} on {}", fields::text(summary, {"name"}),
                             at(summary, {"ranks", "count"}).get<std::size_t>(),
                             at(summary, {"ranks", "count"}).get<std::size_t>() == 1 ? "" : "s",
                             fields::text(summary, {"device", "model"}));
  report.opening = overlap_opening(summary);
  if (at(summary, {"status"}) == "interrupted") report.open("Interrupted: the results so far are below.");
  report.sections = {runs_section(summary), step_section(summary), causes_section(summary), ranks_section(summary),
                     training_section(summary)};
  return report;
}

TextReport overlap_sweep_report(const Json& points) {
  TextReport report{"weir overlap: a sweep"};
  ReportSection& section = report.section("Points");
  ReportTable& table = section.table(
      {{"settings", true}, {"step p50"}, {"exposed"}, {"efficiency"}, {"at best"}, {"inflation"}, {"memory"}});
  for (const Json& point : points) {
    std::string settings;
    for (const Json& each : at(point, {"assignments"}))
      settings += fmt::format("{}{}", settings.empty() ? "" : " ", fields::text(each, {}));
    if (at(point, {"failure"}).is_string()) {
      section.remark("FAILED: {}: {}", settings, fields::text(point, {"failure"}));
      settings += " FAILED";
    }
    const Json& summary = at(point, {"summary"});
    const Json& step = at(summary, {"step_ns", "overlapped"});
    table.rows.push_back({settings, step.is_object() ? duration(at(step, {"p50"})) : "-",
                          duration(at(summary, {"overlap", "exposed_ns"})),
                          percent(at(summary, {"overlap", "efficiency"})),
                          percent(at(summary, {"overlap", "best_efficiency"})),
                          ratio(at(summary, {"overlap", "inflation"})), bytes(at(summary, {"memory_bytes"}))});
  }
  return report;
}

DocumentText text_list::overlap(const Json& document) { return overlap_report(document); }

}  // namespace weir
