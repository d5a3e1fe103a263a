#include "lab/fleet/judge/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lab/fleet/judge/spread.h"
#include "lab/fleet/judge/words.h"

namespace weir::fleet {
namespace {

constexpr double kPriorLink = 0.03;       // natural spread of bandwidths between nodes, where few links show none
constexpr double kLinksShare = 0.1;       // of the significance that links may spend
constexpr std::size_t kOwnLinks = 8;      // fewer links of a kind are compared with all others
constexpr std::size_t kMinNodeLinks = 2;  // one slow link of a node does not say whose fault it is
constexpr int kRounds = 10;

struct Link {
  std::size_t a = 0, b = 0;  // nodes
  std::string kind;          // whether they share a switch, where that is known
  double value = 0;          // bytes per second, the median of both directions
  double badness = 0;        // - logarithm, around the links of its kind
  double own = 0;            // what its nodes do not explain
};

std::string kind_of_link(const NodeReport& a, const NodeReport& b) {
  const auto at = a.place.find("switch"), other = b.place.find("switch");
  if (at == a.place.end() || other == b.place.end()) return {};
  return at->second == other->second ? "inside" : "between";
}

std::vector<Link> links_of(const JudgeTable& table, FleetReport& report) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t at = 0; at < table.nodes.size(); ++at) by_name.emplace(table.nodes[at]->name, at);
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> samples;
  std::size_t unmeasured = 0;
  std::string reason;
  for (std::size_t at = 0; at < table.nodes.size(); ++at)
    for (const NodeLink& link : table.nodes[at]->links) {
      const auto to = by_name.find(link.to);
      if (to == by_name.end() || to->second == at) continue;
      std::vector<double> known;
      for (const double each : link.bytes_per_s)
        if (std::isfinite(each) && each > 0) known.push_back(each);
      if (known.empty()) {
        if (unmeasured++ == 0) reason = plain_fact(link.reason);
        continue;
      }
      samples[std::minmax(at, to->second)].push_back(median_known(std::move(known)));
    }
  if (unmeasured > 0)
    report.notes.push_back(fmt::format("{} links between nodes have no samples{}", unmeasured,
                                       reason.empty() ? "" : ", the first one because: " + reason));
  std::vector<Link> links;
  for (const auto& [pair, values] : samples) {
    Link link;
    std::tie(link.a, link.b) = pair;
    link.kind = kind_of_link(*table.nodes[link.a], *table.nodes[link.b]);
    link.value = median_known(values);
    links.push_back(std::move(link));
  }
  // Links of a kind that few have are compared with all.
  std::map<std::string, std::vector<double>> kinds;
  for (const Link& link : links) kinds[link.kind].push_back(-std::log(link.value));
  std::vector<double> all;
  for (const auto& [kind, values] : kinds) all.insert(all.end(), values.begin(), values.end());
  const double middle_of_all = median_known(all);
  std::map<std::string, double> middles;
  for (const auto& [kind, values] : kinds)
    middles[kind] = values.size() >= kOwnLinks ? median_known(values) : middle_of_all;
  for (Link& link : links) link.badness = -std::log(link.value) - middles[link.kind];
  return links;
}

// What each node adds to all of its links; NaN for a node with too few of them. A median polish: one slow link of many
// does not move its nodes, and a slow node does not move its partners.
std::vector<double> node_effects(const std::vector<Link>& links, std::size_t nodes) {
  std::vector<std::vector<std::size_t>> of_node(nodes);
  for (std::size_t at = 0; at < links.size(); ++at) {
    of_node[links[at].a].push_back(at);
    of_node[links[at].b].push_back(at);
  }
  std::vector<double> effects(nodes, 0);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> next(nodes, 0);
    for (std::size_t node = 0; node < nodes; ++node) {
      if (of_node[node].size() < kMinNodeLinks) continue;
      std::vector<double> rest;
      for (const std::size_t at : of_node[node]) {
        const std::size_t other = links[at].a == node ? links[at].b : links[at].a;
        rest.push_back(links[at].badness - effects[other]);
      }
      // With two links the lower one: a node is slow only where both of them are.
      next[node] = rest.size() == kMinNodeLinks ? std::min(rest[0], rest[1]) : median_known(std::move(rest));
    }
    // Half a step: two nodes that are each other's only partners would swing.
    for (std::size_t node = 0; node < nodes; ++node) effects[node] = (effects[node] + next[node]) / 2;
  }
  for (std::size_t node = 0; node < nodes; ++node)
    if (of_node[node].size() < kMinNodeLinks) effects[node] = std::nan("");
  return effects;
}

Finding slow_link(double value, double badness, double p, std::size_t peers) {
  Finding finding;
  finding.value = value;
  finding.effect = std::expm1(-badness);
  finding.typical = value / (1 + *finding.effect);
  finding.p = p;
  finding.peers = peers;
  return finding;
}

}  // namespace

void add_link_findings(const JudgeTable& table, FleetReport& report) {
  std::vector<Link> links = links_of(table, report);
  if (links.empty()) return;
  const double threshold = -std::log1p(-std::min(report.options.threshold, 0.99));
  const std::vector<double> effects = node_effects(links, table.nodes.size());
  const Deviations of_nodes = deviations(effects, {}, kPriorLink);
  std::vector<double> p_values;
  for (const Deviation& each : of_nodes.each)
    if (!std::isnan(each.p)) p_values.push_back(each.p);
  const double level = report.options.significance * kLinksShare / 2;
  const double node_limit = passing_p(p_values, level);
  std::vector<bool> is_slow(table.nodes.size());
  for (std::size_t node = 0; node < table.nodes.size(); ++node) {
    const Deviation& found = of_nodes.each[node];
    if (!(found.p <= node_limit) || !(found.by > threshold)) continue;
    is_slow[node] = true;
    if (node >= table.judged_nodes) continue;
    std::vector<double> values;
    for (const Link& link : links)
      if (link.a == node || link.b == node) values.push_back(link.value);
    const std::size_t count = values.size();
    Finding finding = slow_link(median_known(std::move(values)), found.by,
                                std::min(1.0, found.p * static_cast<double>(p_values.size()) / (kLinksShare / 2)),
                                of_nodes.spread.count - 1);
    finding.kind = FindingKind::slow;
    finding.node = table.nodes[node]->name;
    finding.sentence = fmt::format(
        "{}: its {} links to other nodes are {} those of its {} peers: the node or its adapter, no link",
        plain_fact(finding.node), count, share_text(*finding.effect), grouped(static_cast<double>(finding.peers)));
    report.findings.push_back(std::move(finding));
  }
  std::vector<double> own;
  for (Link& link : links) {
    const auto part = [&](std::size_t node) { return is_slow[node] ? effects[node] : 0; };
    link.own = link.badness - part(link.a) - part(link.b);
    own.push_back(link.own);
  }
  const Deviations of_links = deviations(own, {}, kPriorLink);
  p_values.clear();
  for (const Deviation& each : of_links.each)
    if (!std::isnan(each.p)) p_values.push_back(each.p);
  const double limit = passing_p(p_values, level);
  for (std::size_t at = 0; at < links.size(); ++at) {
    const Link& link = links[at];
    const Deviation& found = of_links.each[at];
    if (!(found.p <= limit) || !(found.by > threshold) || std::min(link.a, link.b) >= table.judged_nodes) continue;
    Finding finding = slow_link(link.value, found.by,
                                std::min(1.0, found.p * static_cast<double>(p_values.size()) / (kLinksShare / 2)),
                                of_links.spread.count - 1);
    finding.kind = FindingKind::link;
    finding.node = table.nodes[link.a]->name;
    finding.to = table.nodes[link.b]->name;
    const bool is_known = !std::isnan(effects[link.a]) && !std::isnan(effects[link.b]);
    // Alone it makes neither node unfit: with others both are well.
    finding.is_unfit = false;
    finding.sentence =
        fmt::format("{} to {}: the link is {} the {} others{}", plain_fact(finding.node), plain_fact(finding.to),
                    share_text(*finding.effect), grouped(static_cast<double>(finding.peers)),
                    is_known ? ", and both nodes are well with others"
                             : "; measure its nodes with others to tell whose fault it is");
    report.findings.push_back(std::move(finding));
  }
}

}  // namespace weir::fleet
