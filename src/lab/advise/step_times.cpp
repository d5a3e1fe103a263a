#include "lab/advise/step_times.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::advise {
namespace {
// From the end of the first step to the end of the last; a step ends with the last of its commands and those before.
template <class EndOf>
double step_by(const ReplayModel& model, EndOf end_of, double whole_ns) {
  if (model.step_of.empty()) return whole_ns;
  std::vector<double> ends(model.steps, std::numeric_limits<double>::lowest());
  for (std::uint32_t i = 0; i < model.commands.size(); ++i)
    if (const std::uint32_t step = model.step_of[i]; step != kNone) ends[step] = std::max(ends[step], end_of(i));
  for (std::size_t step = 1; step < ends.size(); ++step) ends[step] = std::max(ends[step], ends[step - 1]);
  return (ends.back() - ends.front()) / (model.steps - 1);
}
}  // namespace

double step_ns(const ReplayModel& model, const Replayed& replayed) {
  return step_by(
      model, [&](std::uint32_t i) { return static_cast<double>(replayed.ended_ns[i]); },
      static_cast<double>(replayed.finish_ns));
}

double observed_step_ns(const ReplayModel& model, const Timeline& timeline) {
  const auto end_of = [&](std::uint32_t i) {
    return static_cast<double>(timeline.spans[model.commands[i].span].ended_ns - model.origin_ns);
  };
  return step_by(model, end_of, static_cast<double>(model.observed_ns));
}

}  // namespace weir::advise
