// The timing block of an entry: quantiles, interval and outliers of samples. Knows numbers only.
#include <cmath>

#include "lab/kernels/method.h"
#include "lab/kernels/outliers.h"
#include "measure/statistics.h"

namespace weir::bench {

Json timing_block(const std::vector<double>& samples_ns) {
  const auto ms = [](double ns) { return number_or_null(ns / 1e6); };
  const double mean_ns = mean(samples_ns);
  Json timing = {{"latency_ms_p50", ms(quantile(samples_ns, 0.5))},
                 {"latency_ms_p90", ms(quantile(samples_ns, 0.9))},
                 {"latency_ms_p99", ms(quantile(samples_ns, 0.99))},
                 {"latency_ms_mean", ms(mean_ns)},
                 {"latency_ms_std", ms(standard_deviation(samples_ns))},
                 {"throughput_ops_per_sec", number_or_null(1e9 / mean_ns)},
                 {"iterations", samples_ns.size()},
                 {"interval_ms", nullptr},
                 {"samples_ms", Json::array()},
                 {"outliers", outliers_block(classify_outliers(samples_ns))}};
  if (const auto intervals = summary_intervals(samples_ns))
    timing["interval_ms"] = {intervals->p50.low / 1e6, intervals->p50.high / 1e6};
  for (const double ns : samples_ns) timing["samples_ms"].push_back(ns / 1e6);
  return timing;
}

}  // namespace weir::bench
