// When the commands and actions of a model began and ended in its trace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "lab/advise/replay_model.h"

namespace weir::advise {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

inline std::int64_t median_of(std::vector<std::int64_t>& values, std::int64_t otherwise) {
  if (values.empty()) return otherwise;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class ObservedTimes {
 public:
  ObservedTimes(const Timeline& timeline, const ReplayModel& model) : timeline_(timeline), model_(model) {}

  const Span& span_of(std::uint32_t command) const { return timeline_.spans[model_.commands[command].span]; }
  std::int64_t start_of(std::uint32_t command) const { return span_of(command).started_ns; }
  std::int64_t end_of(std::uint32_t command) const { return span_of(command).ended_ns; }
  std::int64_t began(const HostAction& action) const { return timeline_.calls[action.call].started_ns; }
  std::int64_t returned(const HostAction& action) const { return timeline_.calls[action.call].ended_ns; }
  std::string_view name_of(std::uint32_t name) const {
    return name < timeline_.names.size() ? std::string_view(timeline_.names[name]) : std::string_view();
  }

 protected:
  const Timeline& timeline_;

 private:
  const ReplayModel& model_;
};

}  // namespace weir::advise
