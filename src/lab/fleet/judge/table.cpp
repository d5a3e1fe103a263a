#include "lab/fleet/judge/table.h"

#include <algorithm>
#include <cmath>

namespace weir::fleet {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kRangeHalf = 3;  // standard deviations: hardly any repetition lies outside of a stated range

// The standard deviation of the logarithm, from the range that the figure states; 0 where it states none.
double log_noise(const Figure& figure) {
  if (!figure.range || !(figure.range->low > 0) || !(figure.range->high >= figure.range->low)) return 0;
  const double noise = std::log(figure.range->high / figure.range->low) / (2 * kRangeHalf);
  return std::isfinite(noise) ? noise : 0;
}

struct Column {
  std::size_t kind = 0;
  double value = 0, noise = 0;
};

void fill_row(JudgeTable& table, std::size_t row, std::vector<Column>& found) {
  found.clear();
  std::size_t guess = 0;  // documents list figures in the order of figure_kinds()
  for (const Figure& figure : table.rows[row].device->figures) {
    if (!figure.value || !std::isfinite(*figure.value)) continue;
    if (guess >= figure_kinds().size() || figure_kinds()[guess].name != figure.name) guess = kind_index(figure.name);
    if (guess >= figure_kinds().size()) continue;
    found.push_back({guess, *figure.value, log_noise(figure)});
    if (figure.to.empty()) ++guess;
  }
  std::stable_sort(found.begin(), found.end(), [](const Column& a, const Column& b) { return a.kind < b.kind; });
  for (std::size_t i = 0; i < found.size();) {
    std::vector<double> values, noises;
    const std::size_t kind = found[i].kind;
    for (; i < found.size() && found[i].kind == kind; ++i) {
      values.push_back(found[i].value);
      noises.push_back(found[i].noise);
    }
    const double value = median_known(values);
    table.values[kind][row] = value;
    const Goal goal = figure_kinds()[kind].goal;
    if (goal == Goal::none || !(value > 0)) continue;
    table.badness[kind][row] = goal == Goal::lower ? std::log(value) : -std::log(value);
    table.noise[kind][row] = median_known(noises);
  }
}

}  // namespace

std::size_t kind_index(std::string_view figure) {
  std::size_t at = 0;
  for (const FigureKind& kind : figure_kinds()) {
    if (kind.name == figure) break;
    ++at;
  }
  return at;
}

Concern concern_of(std::string_view figure) {
  if (figure.starts_with("gemm_") || figure == "memory") return Concern::speed;
  if (figure == "copy_to_device" || figure == "copy_to_host") return Concern::copies;
  if (figure == "copy_to_peer" || figure == "all_reduce") return Concern::links;
  return Concern::launch;
}

double median_known(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return kNone;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return *std::max_element(values.begin(), middle) / 2 + *middle / 2;
}

JudgeTable judge_table(std::span<const NodeReport> nodes, std::span<const NodeReport> peers) {
  JudgeTable table;
  table.judged_nodes = nodes.size();
  for (const NodeReport& node : nodes) table.nodes.push_back(&node);
  for (const NodeReport& node : peers) table.nodes.push_back(&node);
  for (std::size_t at = 0; at < table.nodes.size(); ++at)
    for (const NodeDevice& device : table.nodes[at]->devices)
      table.rows.push_back({table.nodes[at], &device, at, at < nodes.size(), 0});
  for (auto* const columns : {&table.values, &table.badness})
    columns->assign(figure_kinds().size(), std::vector<double>(table.rows.size(), kNone));
  table.noise.assign(figure_kinds().size(), std::vector<double>(table.rows.size(), 0));
  std::vector<Column> found;
  for (std::size_t row = 0; row < table.rows.size(); ++row) fill_row(table, row, found);
  return table;
}

}  // namespace weir::fleet
