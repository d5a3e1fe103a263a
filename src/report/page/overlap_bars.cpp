#include "report/page/overlap_bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr double kTolerance = 1e-3;  // of the span: parts that are means of rounded numbers

}  // namespace

bool make_bar(const Json& times, OverlapBar& bar, std::vector<std::string>& notes) {
  const auto span = values::amount(times, {"span_ns"});
  if (!span || *span <= 0) return false;
  const auto part = [&](const char* key) { return values::amount(times, {key}); };
  bar.span_ns = *span;
  const double communication = part("communication_ns").value_or(0), compute = part("compute_ns").value_or(0);
  const auto alone = part("alone_communication_ns");
  bar.exposed_ns = alone ? *alone : part("exposed_ns").value_or(0);
  bar.hidden_ns = std::max(0.0, communication - bar.exposed_ns);
  // Communication that compute ran beside; where the document does not tell it from what copies hid, all that was
  // hidden, so that compute alone is the least that it may have been.
  const double beside = part("hidden_communication_ns").value_or(bar.hidden_ns);
  bar.compute_only_ns = std::max(0.0, compute - beside);
  bar.idle_ns = part("idle_ns").value_or(std::max(0.0, *span - part("busy_ns").value_or(*span)));
  const double sum = bar.compute_only_ns + bar.hidden_ns + bar.exposed_ns + bar.idle_ns;
  bar.other_ns = std::max(0.0, *span - sum);
  if (sum > *span) {
    if (sum > *span * (1 + kTolerance))
      notes.push_back(fmt::format("{}: its parts add up to {}, its span is {}; they are drawn in proportion.",
                                  bar.label, format_duration(sum), format_duration(*span)));
    for (double* each : {&bar.compute_only_ns, &bar.hidden_ns, &bar.exposed_ns, &bar.idle_ns}) *each *= *span / sum;
  }
  return true;
}

Json to_json(const OverlapBar& bar) {
  return {{"label", bar.label},         {"span_ns", bar.span_ns},       {"compute_only_ns", bar.compute_only_ns},
          {"hidden_ns", bar.hidden_ns}, {"exposed_ns", bar.exposed_ns}, {"idle_ns", bar.idle_ns},
          {"other_ns", bar.other_ns}};
}

}  // namespace weir::page
