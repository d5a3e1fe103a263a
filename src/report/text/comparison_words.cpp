// How the numbers of a comparison are formatted in every form.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/text/comparison.h"

namespace weir {
namespace {

std::string fraction_percent(double fraction) { return fmt::format("{:g} %", fraction * 100); }

}  // namespace

std::string value_text(const MetricComparison& metric, const std::optional<double>& value) {
  if (!value) return "-";
  return metric.unit == "ns" ? format_duration(*value)
         : *value < 1        ? fmt::format("{:.3g}", *value)
                             : format_quantity(*value);
}

std::string interval_text(const MetricComparison& metric) {
  return metric.interval ? fmt::format("[{:.3f}, {:.3f}]", metric.interval->low, metric.interval->high) : "-";
}

std::string p_text(const MetricComparison& metric) {
  if (!metric.adjusted_p) return "-";
  return *metric.adjusted_p < 0.001 ? "<0.001" : fmt::format("{:.3f}", *metric.adjusted_p);
}

std::string metric_line(const MetricComparison& metric) {
  const std::string unit = metric.unit.empty() || metric.unit == "ns" ? "" : " " + metric.unit;
  std::string line = fmt::format("{} {} -> {}{}", metric.metric, value_text(metric, metric.baseline_median),
                                 value_text(metric, metric.test_median), unit);
  if (metric.ratio) line += fmt::format(", {}", format_ratio(*metric.ratio));
  if (metric.interval) line += " " + interval_text(metric);
  if (metric.adjusted_p) line += fmt::format(", p {}", p_text(metric));
  line += fmt::format(": {}", name_of(metric.verdict));
  if (!metric.reason.empty()) line += fmt::format(" ({})", metric.reason);
  return line;
}

std::string method_line(const Comparison& comparison) {
  return fmt::format(
      "Ratios are test / baseline of medians with {} intervals; changes count beyond {} and with p below {} after Holm "
      "over {} test{}.",
      fraction_percent(comparison.options.bootstrap.confidence), fraction_percent(comparison.options.threshold),
      fraction_percent(comparison.options.significance), comparison.hypotheses, comparison.hypotheses == 1 ? "" : "s");
}

double slowness_of(const PairComparison& pair) {
  double worst = 0;
  for (const MetricComparison& metric : pair.metrics) {
    if (!metric.ratio || !(*metric.ratio > 0)) continue;
    // For rates and efficiencies, less is worse; only times are in nanoseconds.
    worst = std::max(worst, metric.unit == "ns" ? *metric.ratio : 1 / *metric.ratio);
  }
  return worst;
}

}  // namespace weir
