#include "lab/fleet/judge/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "lab/fleet/judge/words.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kMostFacts = 500;  // of hostile documents the others are left out
constexpr std::size_t kMostValues = 20;  // of one difference in the document
constexpr std::size_t kMostRareFindings = 200;
constexpr double kCommon = 0.9, kRare = 0.05;

// Settings that figures.h has as numbers.
constexpr std::array kSetNumbers{"power_limit", "max_clock"};

struct Held {
  std::map<std::string, std::vector<std::size_t>> rows;  // by value
  bool is_of_device = false;
};

// A few names of those that hold the value, and how many they are: nodes, or devices.
std::pair<std::size_t, std::vector<std::string>> holders_of(const JudgeTable& table, const FactColumn& fact,
                                                            std::size_t value, std::size_t most) {
  std::size_t count = 0, last = FactColumn::kNothing;
  std::vector<std::string> names;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (fact.held[row] != value || (!fact.is_of_device && table.rows[row].node_at == last)) continue;
    last = table.rows[row].node_at;
    if (++count <= most) {
      const DeviceRow& device = table.rows[row];
      names.push_back(fact.is_of_device ? device.node->name + " " + device.device->name : device.node->name);
    }
  }
  return {count, names};
}

void add_rare(const JudgeTable& table, const FactColumn& fact, FleetReport& report) {
  const double all = static_cast<double>(std::accumulate(fact.counts.begin(), fact.counts.end(), std::size_t{0}));
  if (static_cast<double>(fact.counts[0]) < kCommon * all) return;
  for (std::size_t value = 1; value < fact.values.size(); ++value) {
    if (static_cast<double>(fact.counts[value]) > kRare * all || report.findings.size() >= kMostRareFindings) continue;
    const auto first = std::find(fact.held.begin(), fact.held.end(), value) - fact.held.begin();
    const DeviceRow& row = table.rows[static_cast<std::size_t>(first)];
    const auto [count, names] = holders_of(table, fact, value, 3);
    const auto common = holders_of(table, fact, 0, 0).first;
    Finding finding;
    finding.kind = FindingKind::different;
    finding.is_unfit = false;
    if (count == 1) {
      finding.node = row.node->name;
      if (fact.is_of_device) {
        finding.device = row.device->name;
        finding.serial = row.device->serial;
      }
    }
    finding.peers = common;
    std::string who = first_names(names);
    if (count > names.size()) who += fmt::format(" and {} more", count - names.size());
    finding.sentence = fmt::format("{}: {} {} where {} {} have {}", who, plain_fact(fact.name),
                                   plain_fact(fact.values[value]), grouped(static_cast<double>(common)),
                                   fact.is_of_device ? "devices" : "nodes", plain_fact(fact.values[0]));
    report.findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<FactColumn> fact_columns(const JudgeTable& table) {
  std::map<std::string, Held> found;
  const auto hold = [&](const std::string& name, const std::string& value, std::size_t row, bool is_of_device) {
    auto at = found.find(name);
    if (at == found.end()) {
      if (found.size() >= kMostFacts) return;
      at = found.emplace(name, Held{}).first;
      at->second.is_of_device = is_of_device;
    }
    if (at->second.is_of_device != is_of_device) return;  // the same name for both: the first one counts
    at->second.rows[value].push_back(row);
  };
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (const auto& [name, value] : table.rows[row].device->facts) hold(name, value, row, true);
    for (const auto& [name, value] : table.rows[row].node->facts) hold(name, value, row, false);
    for (const char* const name : kSetNumbers)
      if (const double value = table.values[kind_index(name)][row];
          std::isfinite(value) && !table.rows[row].device->facts.contains(name))
        hold(name, grouped(std::round(value)) + " " + std::string(find_figure(name)->unit), row, true);
  }
  std::vector<FactColumn> columns;
  for (const auto& [name, held] : found) {
    FactColumn& column = columns.emplace_back();
    column.name = name;
    column.is_of_device = held.is_of_device;
    column.held.assign(table.rows.size(), FactColumn::kNothing);
    std::vector<std::pair<std::size_t, const std::string*>> order;
    for (const auto& [value, rows] : held.rows) order.emplace_back(rows.size(), &value);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [count, value] : order) {
      for (const std::size_t row : held.rows.at(*value)) column.held[row] = column.values.size();
      column.values.push_back(*value);
      column.counts.push_back(count);
    }
  }
  return columns;
}

void add_differences(const JudgeTable& table, const std::vector<FactColumn>& facts, FleetReport& report) {
  for (const FactColumn& fact : facts) {
    if (!fact.differs() || fact.is_identity()) continue;
    Difference& difference = report.differences.emplace_back();
    difference.name = fact.name;
    difference.is_of_device = fact.is_of_device;
    for (std::size_t value = 0; value < std::min(fact.values.size(), kMostValues); ++value) {
      auto [count, names] = holders_of(table, fact, value, 5);
      difference.values.push_back({fact.values[value], count, std::move(names)});
    }
    add_rare(table, fact, report);
  }
}

}  // namespace weir::fleet
