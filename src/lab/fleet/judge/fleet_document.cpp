// The document weir.fleet/1: what `judge` says, and the grid of all values. Judges nothing.
#include <cmath>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/fleet/judge/table.h"

namespace weir::fleet {
namespace {

Json peer_figure_json(const PeerFigure& figure) {
  const FigureKind* const kind = find_figure(figure.name);
  return WEIR_NAMED(figure.name, named("unit", kind == nullptr ? Json("") : Json(kind->unit)), figure.count, figure.p50,
                    figure.min, figure.max, figure.spread);
}

Json group_json(const PeerGroup& group) {
  return WEIR_NAMED(group.model, text_or_null(group.settings), group.devices,
                    named("figures", json_list(group.figures, peer_figure_json)));
}

Json finding_json(const Finding& finding) {
  return WEIR_NAMED(finding.kind, finding.node, text_or_null(finding.device), text_or_null(finding.serial),
                    text_or_null(finding.figure), text_or_null(finding.to), text_or_null(finding.place), finding.value,
                    finding.typical, finding.effect, finding.p, finding.peers, text_or_null(finding.cause),
                    finding.sentence, finding.is_unfit);
}

Json difference_json(const Difference& difference) {
  return WEIR_NAMED(difference.name, difference.is_of_device,
                    named("values", json_list(difference.values, [](const Difference::Holders& holders) -> Json {
                            return WEIR_NAMED(holders.value, holders.count, named("first", Json(holders.first)));
                          })));
}

Json verdict_json(const NodeVerdict& verdict) {
  return WEIR_NAMED(verdict.name, verdict.is_fit, text_or_null(verdict.reason));
}

// Of copies to several devices the worst: a grid should show that there is one.
Json worst_of(const NodeDevice& device, const FigureKind& kind) {
  std::optional<double> worst;
  for (const Figure& figure : device.figures) {
    if (figure.name != kind.name || !figure.value) continue;
    const bool is_worse = !worst || (kind.goal == Goal::lower ? *figure.value > *worst : *figure.value < *worst);
    if (is_worse) worst = figure.value;
  }
  return number_or_null(worst);
}

Json grid_json(const FleetReport& report, std::span<const NodeReport> nodes) {
  std::set<std::string> present;
  for (const PeerGroup& group : report.groups)
    for (const PeerFigure& figure : group.figures) present.insert(figure.name);
  std::vector<const FigureKind*> kinds;
  Json figures = Json::array();
  for (const FigureKind& kind : figure_kinds()) {
    if (!present.contains(std::string(kind.name))) continue;
    kinds.push_back(&kind);
    figures.push_back(WEIR_NAMED(kind.name, kind.unit, kind.words, kind.goal));
  }
  std::set<std::pair<std::string, std::string>> unfit;  // node and device; no device: all of the node
  std::set<std::string> unfit_places;
  for (const Finding& finding : report.findings) {
    if (!finding.is_unfit) continue;
    unfit.emplace(finding.node, finding.device);
    if (!finding.place.empty()) unfit_places.insert(finding.place);
  }
  Json rows = Json::array();
  std::size_t at = 0;
  for (const NodeReport& node : nodes) {
    bool is_node_fit = !unfit.contains({node.name, ""});
    for (const auto& [kind, name] : node.place) is_node_fit &= !unfit_places.contains(kind + " " + name);
    for (const NodeDevice& device : node.devices) {
      Json values = Json::array();
      for (const FigureKind* kind : kinds) values.push_back(worst_of(device, *kind));
      rows.push_back({{"node", node.name},
                      {"device", device.name},
                      {"serial", text_or_null(device.serial)},
                      {"group", at < report.group_of_device.size() ? report.group_of_device[at] : 0},
                      {"is_fit", is_node_fit && !unfit.contains({node.name, device.name})},
                      {"values", std::move(values)}});
      ++at;
    }
  }
  return {{"figures", std::move(figures)}, {"rows", std::move(rows)}};
}

}  // namespace

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::wrong:
      return "wrong";
    case FindingKind::slow:
      return "slow";
    case FindingKind::fault:
      return "fault";
    case FindingKind::different:
      return "different";
    case FindingKind::link:
      return "link";
    case FindingKind::missing:
      return "missing";
    case FindingKind::changed:
      return "changed";
  }
  return "missing";
}

Json fleet_document(const FleetReport& report, std::span<const NodeReport> nodes,
                    const std::vector<std::string>& command_line) {
  return WEIR_NAMED(named("schema", schemas::fleet), named("created", wall_time()), command_line,
                    report.options.significance, report.options.threshold, report.nodes, report.devices,
                    named("groups", json_list(report.groups, group_json)),
                    named("findings", json_list(report.findings, finding_json)),
                    named("differences", json_list(report.differences, difference_json)),
                    named("verdicts", json_list(report.verdicts, verdict_json)),
                    named("grid", grid_json(report, nodes)), report.notes);
}

}  // namespace weir::fleet
