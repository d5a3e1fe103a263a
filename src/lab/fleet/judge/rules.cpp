#include "lab/fleet/judge/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "lab/fleet/judge/words.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kMinAlike = 3;  // nodes that must have the same number of devices before another is odd
constexpr double kNearlyAll = 0.9;    // of the peers have a figure
constexpr std::size_t kMostNotes = 20;
// NVIDIA replaces boards from this number of retired pages on (Dynamic Page Retirement, RMA policy).
constexpr double kPagesToReplace = 60;

Finding of_device(FindingKind kind, const DeviceRow& row) {
  Finding finding;
  finding.kind = kind;
  finding.node = row.node->name;
  finding.device = row.device->name;
  finding.serial = row.device->serial;
  return finding;
}

void add_fault(const DeviceRow& row, std::size_t kind, double value, bool is_unfit, std::string_view why,
               FleetReport& report) {
  Finding finding = of_device(FindingKind::fault, row);
  finding.is_unfit = is_unfit;
  if (kind < figure_kinds().size()) {
    finding.figure = figure_kinds()[kind].name;
    finding.value = value;
    finding.sentence =
        fmt::format("{}: {} {}: {}", name_of_device(row), grouped(value), figure_kinds()[kind].words, why);
  } else {
    finding.sentence = fmt::format("{}: {}", name_of_device(row), why);
  }
  report.findings.push_back(std::move(finding));
}

// Corrected errors and repeated transfers are normal in small numbers, which differ from one model to the next: a
// device is named where it has many, and many times what nearly all peers have.
void add_rates(const JudgeTable& table, std::string_view figure, std::string_view why, FleetReport& report) {
  constexpr double kMany = 100, kTimes = 10, kLevel = 0.95;
  const std::size_t kind = kind_index(figure);
  std::map<std::size_t, std::vector<double>> by_group;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    if (const double value = table.values[kind][row]; !std::isnan(value))
      by_group[table.rows[row].group].push_back(value);
  for (auto& [group, values] : by_group) std::sort(values.begin(), values.end());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double value = table.values[kind][row];
    if (!table.rows[row].is_judged || !(value >= kMany)) continue;
    const std::vector<double>& values = by_group[table.rows[row].group];
    const std::size_t others = values.size() - 1;
    if (others == 0) continue;
    // The level among the others: the value itself is one of the highest.
    const double high = values[std::min(others - 1, static_cast<std::size_t>(kLevel * static_cast<double>(others)))];
    if (value < kTimes * std::max(high, 1.0)) continue;
    add_fault(table.rows[row], kind, value, false,
              fmt::format("{}; 95 % of its {} peers have at most {}", why, grouped(static_cast<double>(others)),
                          grouped(high)),
              report);
    report.findings.back().typical = values[values.size() / 2];
    report.findings.back().peers = others;
  }
}

// What somebody lowered slows a device under long loads, which a probe of seconds need not show: a device is named
// where nearly all of its peers have more.
void add_lowered(const JudgeTable& table, std::string_view figure, std::string_view what_to_do, FleetReport& report) {
  constexpr double kLower = 0.98, kSame = 0.005;
  const std::size_t kind = kind_index(figure);
  const FigureKind& described = figure_kinds()[kind];
  std::vector<std::vector<double>> by_group(report.groups.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    if (const double value = table.values[kind][row]; !std::isnan(value))
      by_group[table.rows[row].group].push_back(value);
  std::vector<double> typical(by_group.size());  // 0: no two are alike
  for (std::size_t group = 0; group < by_group.size(); ++group) {
    const std::vector<double>& values = by_group[group];
    const double middle = values.size() > kMinAlike ? median_known(values) : 0;
    const auto alike = std::count_if(values.begin(), values.end(),
                                     [&](double value) { return std::fabs(value - middle) <= kSame * middle; });
    // One may be the lowered one itself.
    if (static_cast<double>(alike) >= kNearlyAll * static_cast<double>(values.size() - 1)) typical[group] = middle;
  }
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double value = table.values[kind][row], theirs = typical[table.rows[row].group];
    if (!table.rows[row].is_judged || !(value < kLower * theirs)) continue;
    add_fault(table.rows[row], figure_kinds().size(), 0, true,
              fmt::format("{} {} {} where nearly all of its {} peers have {}; {}", described.words, grouped(value),
                          described.unit, by_group[table.rows[row].group].size() - 1, grouped(theirs), what_to_do),
              report);
    Finding& finding = report.findings.back();
    finding.figure = described.name;
    finding.value = value;
    finding.typical = theirs;
    finding.peers = by_group[table.rows[row].group].size() - 1;
  }
}

// "remapping_pending", "retirement_pending" and the like, where it is so.
bool is_pending(std::string_view name, std::string_view value) {
  const bool is_about = name.find("pending") != std::string_view::npos;
  return is_about && (value == "yes" || value == "true" || value == "1" || value == "Yes");
}

bool is_failed(std::string_view name, std::string_view value) {
  const bool is_about = name.find("remap") != std::string_view::npos && name.find("fail") != std::string_view::npos;
  return is_about && (value == "yes" || value == "true" || value == "1" || value == "Yes");
}

void add_missing_devices(const JudgeTable& table, FleetReport& report) {
  std::map<std::size_t, std::size_t> nodes_with;
  for (const NodeReport* node : table.nodes)
    if (node->failure.empty()) ++nodes_with[node->devices.size()];
  const auto usual = std::max_element(nodes_with.begin(), nodes_with.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (usual == nodes_with.end() || usual->second < kMinAlike || 3 * usual->second < 2 * table.nodes.size()) return;
  for (std::size_t at = 0; at < table.judged_nodes; ++at) {
    const NodeReport& node = *table.nodes[at];
    if (!node.failure.empty() || node.devices.empty() || node.devices.size() >= usual->first) continue;
    Finding finding;
    finding.kind = FindingKind::missing;
    finding.node = node.name;
    finding.peers = usual->second;
    finding.sentence =
        fmt::format("{}: has {} where {} nodes have {}", plain_fact(node.name), counted_devices(node.devices.size()),
                    grouped(static_cast<double>(usual->second)), usual->first);
    report.findings.push_back(std::move(finding));
  }
}

// Figures that a device lacks: a note for each figure and reason, since peers say that it can be had.
void note_missing_figures(const JudgeTable& table, FleetReport& report) {
  std::map<std::pair<std::size_t, std::string>, std::vector<std::string>> lacking;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const DeviceRow& device = table.rows[row];
    if (!device.is_judged || !device.device->failure.empty()) continue;
    for (const PeerFigure& figure : report.groups[device.group].figures) {
      const std::size_t kind = kind_index(figure.name);
      if (figure_kinds()[kind].goal == Goal::none || !std::isnan(table.values[kind][row])) continue;
      if (static_cast<double>(figure.count) < kNearlyAll * static_cast<double>(report.groups[device.group].devices - 1))
        continue;
      const Figure* const own = device.device->figure(figure.name);
      lacking[{kind, own == nullptr ? "" : plain_fact(own->reason)}].push_back(device.node->name + " " +
                                                                               device.device->name);
    }
  }
  for (const auto& [key, names] : lacking) {
    if (report.notes.size() >= kMostNotes) return;
    report.notes.push_back(fmt::format("{} is missing on {}{}", figure_kinds()[key.first].words, first_names(names),
                                       key.second.empty() ? "" : ": " + key.second));
  }
}

}  // namespace

void add_wrong(const JudgeTable& table, FleetReport& report) {
  for (const DeviceRow& row : table.rows) {
    if (!row.is_judged || row.device->wrong.empty()) continue;
    Finding finding = of_device(FindingKind::wrong, row);
    const std::size_t more = row.device->wrong.size() - 1;
    finding.sentence = fmt::format("{}: computes wrongly: {}{}", name_of_device(row), plain_fact(row.device->wrong[0]),
                                   more == 0 ? "" : fmt::format(", and {} more", more));
    report.findings.push_back(std::move(finding));
  }
}

void add_missing(const JudgeTable& table, FleetReport& report) {
  for (std::size_t at = 0; at < table.judged_nodes; ++at) {
    const NodeReport& node = *table.nodes[at];
    if (node.failure.empty() && !node.devices.empty()) continue;
    Finding finding;
    finding.kind = FindingKind::missing;
    finding.node = node.name;
    finding.sentence = fmt::format("{}: could not be examined: {}", plain_fact(node.name),
                                   node.failure.empty() ? "it has no devices" : plain_fact(node.failure));
    report.findings.push_back(std::move(finding));
  }
  for (const DeviceRow& row : table.rows) {
    if (!row.is_judged || row.device->failure.empty()) continue;
    Finding finding = of_device(FindingKind::missing, row);
    finding.sentence =
        fmt::format("{}: could not be examined to the end: {}", name_of_device(row), plain_fact(row.device->failure));
    report.findings.push_back(std::move(finding));
  }
  add_missing_devices(table, report);
  note_missing_figures(table, report);
}

void add_faults(const JudgeTable& table, FleetReport& report) {
  const std::size_t uncorrected = kind_index("ecc_uncorrected"), pages = kind_index("retired_pages");
  const std::size_t no_figure = figure_kinds().size();
  for (std::size_t at = 0; at < table.rows.size(); ++at) {
    const DeviceRow& row = table.rows[at];
    if (!row.is_judged) continue;
    if (const double value = table.values[uncorrected][at]; value > 0)
      add_fault(row, uncorrected, value, true, "work on it was lost or is wrong; reset it, and test it again", report);
    if (const double value = table.values[pages][at]; value >= kPagesToReplace)
      add_fault(row, pages, value, true, "so many that the maker replaces the board", report);
    for (const auto& [name, value] : row.device->facts) {
      if (is_failed(name, value))
        add_fault(row, no_figure, 0, true, "a memory row could not be replaced by a spare one: replace the board",
                  report);
      else if (is_pending(name, value))
        add_fault(row, no_figure, 0, true, "memory waits to be taken out of use: reset the device", report);
    }
  }
  add_lowered(table, "power_limit", "raise it again", report);
  add_lowered(table, "max_clock", "the board is another one, or its clocks are limited", report);
  add_rates(table, "ecc_corrected", "its memory wears out", report);
  add_rates(table, "pcie_replays", "its PCIe link repeats transfers: reseat the board or its riser", report);
  add_rates(table, "nvlink_errors", "an NVLink repeats transfers", report);
}

}  // namespace weir::fleet
