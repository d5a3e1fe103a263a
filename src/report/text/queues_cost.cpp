// weir.queues/2, cost: where a step's time goes, the effect of other queue counts, one sentence of advice.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/queues_text.h"

namespace weir {
namespace {

using fields::duration;
using queues_text::at;
using queues_text::line;
using queues_text::number;
using queues_text::text;

const Json* verified(const Json& cost, int queues) {
  for (const Json& one : at(cost, {"verification"}))
    if (at(one, {"queues"}) == queues) return &one;
  return nullptr;
}

std::string error_of(const Json& verification) {
  const std::optional<double> error = number(verification, {"error"});
  return error ? fmt::format("{:+.1f} %", 100 * *error) : "";
}

std::string table(const Json& cost) {
  const bool has_measured = at(cost, {"verification"}).is_array();
  const double now = number(cost, {"queues"}).value_or(0);
  double longest = 1;
  for (const Json& point : at(cost, {"predictions"}))
    longest = std::max(longest, number(point, {"step_ns"}).value_or(0));
  std::string out = fmt::format("\n  {:>6}  {:>11}  {:>8}  {}\n", "queues", "predicted", "change",
                                has_measured ? fmt::format("{:>11}  {:>7}", "measured", "error") : "");
  for (const Json& point : at(cost, {"predictions"})) {
    const int queues = at(point, {"queues"}).get<int>();
    const std::optional<double> step_ns = number(point, {"step_ns"});
    out += step_ns ? fmt::format("  {:>6}  {:>11}  {:>+6.0f} %  ", queues, format_duration(*step_ns),
                                 100 * number(point, {"change"}).value_or(0))
                   : fmt::format("  {:>6}  {:>11}  {:>8}  ", queues, "not known", "");
    if (has_measured) {
      const Json* const one = verified(cost, queues);
      out += one == nullptr ? fmt::format("{:>11}  {:>7}  ", "", "")
                            : fmt::format("{:>11}  {:>7}  ", duration((*one)["measured_ns"]), error_of(*one));
    }
    const std::size_t room = has_measured ? 18 : 38;
    if (step_ns)
      out += std::string(
          std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(room) * *step_ns / longest)), '#');
    out += queues == static_cast<int>(now) ? " now\n" : "\n";
  }
  return out;
}

}  // namespace

std::string describe_queue_cost(const Json& document) {
  const Json& cost = at(document, {"cost"});
  std::string out = queues_text::heading(document);
  line(out, "step",
       fmt::format("{}, {} streams, {}, submitted {}", text(cost, {"workload"}), text(cost, {"streams"}),
                   text(cost, {"scale"}), text(cost, {"submit"})));
  const Json& interval = at(cost, {"measured", "interval_ns"});
  line(out, "measured",
       fmt::format("{}{} with {} hardware queues; the host submits for {}", duration(at(cost, {"measured", "step_ns"})),
                   interval.is_array() && interval.size() == 2
                       ? fmt::format(" ({} to {})", duration(interval[0]), duration(interval[1]))
                       : "",
                   text(cost, {"queues"}), duration(at(cost, {"measured", "submit_ns"}))));
  line(out, "mapping", text(cost, {"mapping", "words"}));
  line(out, "calibrated",
       fmt::format("{} durations ({}); the simulated step takes {} ({:+.1f} %; {} before fitting)",
                   text(cost, {"calibration", "durations"}), text(cost, {"calibration", "timeline"}),
                   duration(at(cost, {"calibration", "simulated_ns"})),
                   100 * number(cost, {"calibration", "residual"}).value_or(0),
                   duration(at(cost, {"calibration", "unfitted_ns"}))));
  const Json& blocked = at(cost, {"head_of_line", "simulated"});
  const Json& of_step = at(cost, {"head_of_line", "step_ns"});
  if (blocked.is_object())
    line(out, "head of line",
         fmt::format("{}{} of {} commands waited behind an unrelated one, {} in all, the longest {}",
                     of_step.is_null() ? "" : duration(of_step) + " of the step; ", text(blocked, {"commands"}),
                     text(blocked, {"of_commands"}), duration(at(blocked, {"waited_ns"})),
                     duration(at(blocked, {"longest_ns"}))));
  out += table(cost);
  if (at(cost, {"explanation"}).is_string()) out += "\n" + wrapped(fields::text(cost, {"explanation"}), 0) + "\n";
  out += fmt::format("\n  -> {}\n", wrapped(text(cost, {"advice", "sentence"}), 5));
  queues_text::warnings(out, document);
  return out;
}

}  // namespace weir
