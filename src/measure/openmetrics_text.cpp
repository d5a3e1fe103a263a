#include "measure/openmetrics_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/text_gate.h"

namespace weir {
// # TYPE weir_watch_queue_busy_ratio gauge
// # UNIT weir_watch_queue_busy_ratio ratio
// # HELP weir_watch_queue_busy_ratio Part of the window ...
void OpenMetricsText::family(std::string_view name, std::string_view type, std::string_view unit,
                             std::string_view help) {
  name_ = fmt::format("{}{}", prefix_, name);
  suffix_ = type == "counter" ? "_total" : "";
  opening_ = fmt::format("# TYPE {} {}\n", name_, type);
  if (!unit.empty()) opening_ += fmt::format("# UNIT {} {}\n", name_, unit);
  opening_ += fmt::format("# HELP {} {}\n", name_, help);
}

void OpenMetricsText::add(const MetricLabels& labels, double value) {
  if (!std::isfinite(value)) return;
  text_ += std::exchange(opening_, {});
  fmt::format_to(std::back_inserter(text_), "{}{}", name_, suffix_);
  for (std::size_t i = 0; i < labels.size(); ++i)
    fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                   for_openmetrics(labels[i].second));
  fmt::format_to(std::back_inserter(text_), "{}{}\n", labels.empty() ? " " : "} ", value);
}

std::string OpenMetricsText::end() { return std::move(text_) + "# EOF\n"; }

}  // namespace weir
