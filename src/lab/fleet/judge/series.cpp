#include "lab/fleet/judge/series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "lab/fleet/judge/groups.h"
#include "lab/fleet/judge/spread.h"

namespace weir::fleet {
namespace {

// Figures that a common cause slows together: a small effect in each of them is a clear one in all.
struct Together {
  Concern concern;
  std::array<std::string_view, 4> figures;
};
constexpr std::array kTogether{Together{Concern::speed, {"gemm_fp32", "gemm_bf16", "gemm_fp8"}},
                               Together{Concern::launch, {"launch", "launch_threads", "launch_graph", "round_trip"}},
                               Together{Concern::copies, {"copy_to_device", "copy_to_host"}},
                               Together{Concern::links, {"copy_to_peer", "all_reduce"}}};

// A single series, and how much the mean of several trusts it.
struct Weighed {
  const Series* series;
  double weight;
};

// The mean of several figures, weighted by how closely peers agree in them.
Series together_of(const std::vector<Weighed>& parts, const Together& together) {
  Series sum;
  sum.group = parts[0].series->group;
  sum.concern = together.concern;
  sum.kind = figure_kinds().size();
  sum.threshold = parts[0].series->threshold;
  double total = 0;
  for (const Weighed& part : parts) total += part.weight;
  sum.badness.assign(parts[0].series->badness.size(), 0);
  sum.noise = sum.badness;
  for (const Weighed& part : parts) {
    const double weight = part.weight / total;
    for (std::size_t i = 0; i < sum.badness.size(); ++i) {
      sum.badness[i] += weight * part.series->badness[i];
      sum.noise[i] = std::hypot(sum.noise[i], weight * part.series->noise[i]);
    }
  }
  return sum;
}

void add_peer_figure(const std::vector<double>& values, const FigureKind& kind, PeerGroup& group) {
  PeerFigure figure;
  figure.name = kind.name;
  figure.count = values.size();
  figure.p50 = median_known(values);
  figure.min = *std::min_element(values.begin(), values.end());
  figure.max = *std::max_element(values.begin(), values.end());
  if (*figure.min > 0 && values.size() > 1) {
    std::vector<double> distances;
    for (const double value : values) distances.push_back(std::fabs(std::log(value / *figure.p50)));
    figure.spread = std::expm1(1.482602 * median_known(std::move(distances)));
  }
  group.figures.push_back(std::move(figure));
}

}  // namespace

void add_series(const JudgeTable& table, const std::vector<std::size_t>& rows, double threshold, PeerGroup& group,
                std::size_t group_at, std::vector<Series>& series) {
  std::vector<Series> singles;
  std::vector<double> weights;
  for (std::size_t kind = 0; kind < figure_kinds().size(); ++kind) {
    const FigureKind& figure = figure_kinds()[kind];
    std::vector<double> values;
    for (const std::size_t row : rows)
      if (const double value = table.values[kind][row]; !std::isnan(value)) values.push_back(value);
    if (values.empty()) continue;
    add_peer_figure(values, figure, group);
    if (figure.goal == Goal::none || values.size() < 2) continue;
    Series single;
    single.group = group_at;
    single.concern = concern_of(figure.name);
    single.kind = kind;
    single.threshold = figure.goal == Goal::lower ? std::log1p(threshold) : -std::log1p(-std::min(threshold, 0.99));
    for (const std::size_t row : rows) {
      single.badness.push_back(table.badness[kind][row]);
      single.noise.push_back(table.noise[kind][row]);
    }
    const PeerSpread spread = deviations(single.badness, single.noise, prior_spread(single.concern)).spread;
    for (double& value : single.badness) value -= spread.centre;
    weights.push_back(spread.scale > 0 ? 1 / (spread.scale * spread.scale) : 0);
    singles.push_back(std::move(single));
  }
  for (const Together& together : kTogether) {
    std::vector<Weighed> parts;
    for (std::size_t at = 0; at < singles.size(); ++at)
      if (const auto& names = together.figures;
          std::find(names.begin(), names.end(), figure_kinds()[singles[at].kind].name) != names.end() &&
          weights[at] > 0)
        parts.push_back({&singles[at], weights[at]});
    if (parts.size() > 1) series.push_back(together_of(parts, together));
  }
  series.insert(series.end(), std::make_move_iterator(singles.begin()), std::make_move_iterator(singles.end()));
}

}  // namespace weir::fleet
