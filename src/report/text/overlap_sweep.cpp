// weir.overlap_sweep/1: compute and communication alone and at once, by GEMM, collective, message and variables.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"
#include "run/variable_axis.h"

namespace weir {
namespace {

using namespace fields;

std::string ratio_words(std::optional<double> ratio) { return ratio ? fmt::format("{:.2f}x", *ratio) : "-"; }

// Short steps vary by more than the shorter side takes; a number would then only pretend to say something.
std::string hidden_words(std::optional<double> efficiency) {
  if (!efficiency) return "-";
  return *efficiency < -1 ? "worse" : *efficiency > 1 ? "100 %" : fmt::format("{:.0f} %", 100 * *efficiency);
}

std::string bandwidth(const Json& point, const char* which, const char* way) {
  const auto rate = number(point, {which, way});
  return rate ? fmt::format("{:.{}f}", *rate * 1e-9, *rate < 1e11 ? 2 : 0) : "-";
}

std::string size_words(const Json& point) {
  const auto size = number(point, {"message_bytes"});
  return size && *size >= 0 && *size < 1e18 ? format_bytes(static_cast<std::uint64_t>(*size)) : "-";
}

void add_points(TextReport& report, const std::string& variables, const std::vector<const Json*>& points) {
  const std::string with = variables.empty() ? "" : " with " + variables;
  ReportSection& times = report.section("Alone and at once" + with);
  ReportTable table{
      {{"gemm"}, {"collective", true}, {"message"}, {"compute"}, {"comm."}, {"both"}, {"hidden"}, {"slower"}}};
  ReportTable rates{{{"gemm"}, {"collective", true}, {"message"}, {"algbw"}, {"beside"}, {"busbw"}, {"beside"}}};
  for (const Json* point : points) {
    const std::string gemm = text(*point, {"gemm_size"}), collective = text(*point, {"collective"});
    if (at(*point, {"failure"}).is_string()) {
      times.remark("FAILED: gemm {}, {} of {}: {}", gemm, collective, size_words(*point), text(*point, {"failure"}));
      continue;
    }
    table.rows.push_back(
        {gemm, collective, size_words(*point), duration(number(*point, {"compute_ns", "alone", "p50"})),
         duration(number(*point, {"communication_ns", "alone", "p50"})), duration(number(*point, {"both_ns", "p50"})),
         hidden_words(number(*point, {"overlap_efficiency"})),
         fmt::format("{} {}", ratio_words(number(*point, {"compute_slowdown"})),
                     ratio_words(number(*point, {"communication_slowdown"})))});
    rates.rows.push_back({gemm, collective, size_words(*point), bandwidth(*point, "algorithm_bytes_per_s", "alone"),
                          bandwidth(*point, "algorithm_bytes_per_s", "beside"),
                          bandwidth(*point, "bus_bytes_per_s", "alone"),
                          bandwidth(*point, "bus_bytes_per_s", "beside")});
  }
  if (table.rows.empty()) return;
  table.after =
      "Times are medians. `hidden` is the share of the shorter of the two that the other hides. `slower` is the time "
      "of "
      "compute, then of communication, beside the other over its time alone.";
  times.tables.push_back(std::move(table));
  rates.after = "Bandwidths are in GB/s (10^9), as nccl-tests define them; `beside` is while the GEMM runs.";
  report.add_unless_empty("Bandwidth" + with, std::move(rates));
}

}  // namespace

TextReport overlap_points_report(const Json& document) {
  TextReport report;
  const auto ranks = number(document, {"settings", "ranks"}).value_or(1);
  report.title = fmt::format("weir overlap sweep: {:.0f} rank{} on {}", ranks, ranks == 1 ? "" : "s",
                             text(document, {"device", "model"}));
  report.open("Precision {}.", text(document, {"settings", "precision"}));
  const Json& points = at(document, {"points"});
  if (text(document, {"status"}) == "interrupted") report.open("Interrupted: the points so far are below.");
  if (!points.is_array() || points.empty()) {
    report.open("No point was measured.");
    return report;
  }
  if (ranks == 1) report.open("One rank copies to itself: nothing is sent, so there is no bus bandwidth.");
  std::vector<std::string> groups;  // in the order of the first point of each
  std::vector<std::vector<const Json*>> members;
  for (const Json& point : points) {
    const std::string variables = variable_words(point);
    const auto found = std::find(groups.begin(), groups.end(), variables);
    const auto index = static_cast<std::size_t>(found - groups.begin());
    if (found == groups.end()) {
      groups.push_back(variables);
      members.emplace_back();
    }
    members[index].push_back(&point);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) add_points(report, groups[i], members[i]);
  return report;
}

DocumentText text_list::overlap_sweep(const Json& document) { return overlap_points_report(document); }

}  // namespace weir
