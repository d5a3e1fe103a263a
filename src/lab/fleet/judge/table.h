// The devices of all nodes as columns of numbers, which the parts of `judge` share: a row per device, a column per
// figure. Knows no statistics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lab/fleet/figures.h"
#include "lab/fleet/judge/judge.h"

namespace weir::fleet {

// What of a device is slow: figures of one concern have common causes, and are named together.
enum class Concern : std::uint8_t { speed, launch, copies, links };
inline constexpr std::array kConcerns{Concern::speed, Concern::launch, Concern::copies, Concern::links};

struct DeviceRow {
  const NodeReport* node = nullptr;
  const NodeDevice* device = nullptr;
  std::size_t node_at = 0;  // in JudgeTable::nodes
  bool is_judged = true;
  std::size_t group = 0;  // in FleetReport::groups
};

struct JudgeTable {
  std::vector<const NodeReport*> nodes;  // those that are judged first, then their peers
  std::size_t judged_nodes = 0;
  std::vector<DeviceRow> rows;  // node by node
  // By place in figure_kinds(), then by row; NaN where there is no value. Of copies to several devices the median, so
  // that one bad partner does not make a device slow.
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> badness;  // logarithm of the value, larger is worse; only of figures with a goal
  std::vector<std::vector<double>> noise;    // standard deviation of `badness` from the figure's own range, else 0
};

JudgeTable judge_table(std::span<const NodeReport> nodes, std::span<const NodeReport> peers);

std::size_t kind_index(std::string_view figure);  // figure_kinds().size() for an unknown name
Concern concern_of(std::string_view figure);      // of a figure with a goal
// The median of the values that are not NaN; NaN where there is none.
double median_known(std::vector<double> values);

}  // namespace weir::fleet
