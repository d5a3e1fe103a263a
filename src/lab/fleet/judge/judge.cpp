// The parts of `judge` put together: groups, what is slow and why, rules, links, a verdict for each node. Has no
// statistics of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lab/fleet/judge/cause.h"
#include "lab/fleet/judge/facts.h"
#include "lab/fleet/judge/groups.h"
#include "lab/fleet/judge/links.h"
#include "lab/fleet/judge/rules.h"
#include "lab/fleet/judge/slow.h"
#include "lab/fleet/judge/words.h"

namespace weir::fleet {
namespace {

using Level = SlowUnit::Level;

constexpr double kManySlow = 0.1;  // of a group: then it may be two kinds of device, which no fact tells apart
constexpr std::size_t kEnoughForKinds = 30;
constexpr std::size_t kMostCausesSought = 5000;  // each is compared with its whole group

std::size_t nodes_of(const JudgeTable& table, const SlowUnit& unit) {
  std::set<std::size_t> nodes;
  for (const std::size_t row : unit.rows) nodes.insert(table.rows[row].node_at);
  return nodes.size();
}

std::string subject_of(const JudgeTable& table, const SlowUnit& unit) {
  const DeviceRow& row = table.rows[unit.rows[0]];
  if (unit.level == Level::device) return name_of_device(row);
  if (unit.level == Level::node)
    return fmt::format("{} ({} of its {} devices)", plain_fact(row.node->name), unit.sharing, unit.rows.size());
  return fmt::format("{} ({} of {} devices of its {} nodes)", plain_fact(unit.place), unit.sharing, unit.rows.size(),
                     nodes_of(table, unit));
}

// "node7 cuda:3 (1320224): GEMM bf16 6.1 % below its 1,023 peers, GEMM fp8 5.8 % below: clock 1,410 MHz where they have
// 1,755"
std::string slow_sentence(const JudgeTable& table, const SlowUnit& unit, const std::string& cause) {
  const char* const peers = unit.level == Level::device ? "peer"
                            : unit.level == Level::node ? "peer node"
                                                        : "peer place";
  std::string sentence =
      fmt::format("{}: {} {} its {} {}{}", subject_of(table, unit), figure_kinds()[unit.kind].words,
                  share_text(unit.effect), grouped(static_cast<double>(unit.peers)), peers, unit.peers == 1 ? "" : "s");
  for (const auto& [kind, effect] : unit.also)
    sentence += fmt::format(", {} {}", figure_kinds()[kind].words, share_text(effect));
  return cause.empty() ? sentence : sentence + ": " + cause;
}

Finding slow_finding(const JudgeTable& table, const SlowUnit& unit, const Causes* causes) {
  Finding finding;
  const DeviceRow& row = table.rows[unit.rows[0]];
  finding.place = unit.place;
  if (unit.level != Level::place) finding.node = row.node->name;
  if (unit.level == Level::device) {
    finding.device = row.device->name;
    finding.serial = row.device->serial;
  }
  finding.figure = figure_kinds()[unit.kind].name;
  finding.value = unit.value;
  finding.typical = unit.typical;
  finding.effect = unit.effect;
  finding.p = unit.p;
  finding.peers = unit.peers;
  if (causes != nullptr) finding.cause = causes->of(unit);
  finding.sentence = slow_sentence(table, unit, finding.cause);
  return finding;
}

// Many slow devices without a fact that tells them apart are named one by one; the reader should know that they are
// many.
void note_many_slow(const JudgeTable& table, const std::vector<SlowUnit>& slow, FleetReport& report) {
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> counts;
  for (const SlowUnit& unit : slow)
    if (unit.level == Level::device) ++counts[{table.rows[unit.rows[0]].group, unit.kind}];
  for (const auto& [key, count] : counts) {
    const PeerGroup& group = report.groups[key.first];
    if (group.devices < kEnoughForKinds || static_cast<double>(count) < kManySlow * static_cast<double>(group.devices))
      continue;
    report.notes.push_back(fmt::format(
        "{} of {} of model {} are slow in {}, and no fact tells them apart: perhaps there are two kinds of them",
        counted_devices(count), grouped(static_cast<double>(group.devices)), plain_fact(group.model),
        figure_kinds()[key.second].words));
  }
}

void note_what_was_not_judged(const JudgeTable& table, FleetReport& report) {
  for (const PeerGroup& group : report.groups)
    if (group.devices == 1)
      report.notes.push_back(fmt::format("there is one device of {}{}{}: its speed is compared with nobody's",
                                         plain_fact(group.model), group.settings.empty() ? "" : ", ", group.settings));
  std::map<std::string, std::size_t> reports;
  for (std::size_t at = 0; at < table.judged_nodes; ++at) ++reports[table.nodes[at]->name];
  for (const auto& [name, count] : reports)
    if (count > 1 && report.notes.size() < 50)
      report.notes.push_back(fmt::format("{} has {} reports: each is judged by itself, and its verdict is the worst",
                                         plain_fact(name), count));
}

int rank_of(const Finding& finding) {
  if (!finding.is_unfit) return finding.kind == FindingKind::link ? 5 : finding.kind == FindingKind::fault ? 6 : 7;
  switch (finding.kind) {
    case FindingKind::wrong:
      return 0;
    case FindingKind::fault:
      return 1;
    case FindingKind::missing:
      return 2;
    default:
      return finding.place.empty() ? 4 : 3;
  }
}

void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const int first = rank_of(a), second = rank_of(b);
    if (first != second) return first < second;
    return std::fabs(a.effect.value_or(0)) > std::fabs(b.effect.value_or(0));
  });
}

bool stands_at(const NodeReport& node, const std::string& place) {
  return std::any_of(node.place.begin(), node.place.end(),
                     [&](const auto& each) { return each.first + " " + each.second == place; });
}

void add_verdicts(const JudgeTable& table, FleetReport& report) {
  std::map<std::string, std::string> reasons;  // by node; empty: it is fit
  for (std::size_t at = 0; at < table.judged_nodes; ++at) reasons[table.nodes[at]->name];
  const auto blame = [&](const std::string& node, const Finding& finding) {
    if (const auto found = reasons.find(node); found != reasons.end() && found->second.empty())
      found->second = finding.sentence;
  };
  for (const Finding& finding : report.findings) {
    if (!finding.is_unfit) continue;
    if (finding.place.empty())
      blame(finding.node, finding);
    else
      for (std::size_t at = 0; at < table.judged_nodes; ++at)
        if (stands_at(*table.nodes[at], finding.place)) blame(table.nodes[at]->name, finding);
  }
  for (const auto& [name, reason] : reasons) report.verdicts.push_back({name, reason.empty(), reason});
}

}  // namespace

FleetReport judge(std::span<const NodeReport> nodes, std::span<const NodeReport> peers, const JudgeOptions& options) {
  FleetReport report;
  report.options = options;
  JudgeTable table = judge_table(nodes, peers);
  report.nodes = nodes.size();
  for (const NodeReport& node : nodes) report.devices += node.devices.size();
  const std::vector<FactColumn> facts = fact_columns(table);
  make_groups(table, facts, report);
  for (const DeviceRow& row : table.rows)
    if (row.is_judged) report.group_of_device.push_back(row.group);
  const std::vector<SlowUnit> slow = slow_units(table, report);
  const Causes causes(table, facts, report);
  for (const SlowUnit& unit : slow)
    report.findings.push_back(
        slow_finding(table, unit, report.findings.size() < kMostCausesSought ? &causes : nullptr));
  add_wrong(table, report);
  add_missing(table, report);
  add_faults(table, report);
  add_link_findings(table, report);
  add_differences(table, facts, report);
  note_many_slow(table, slow, report);
  note_what_was_not_judged(table, report);
  sort_findings(report.findings);
  add_verdicts(table, report);
  return report;
}

}  // namespace weir::fleet
