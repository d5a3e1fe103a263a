// Figures of a group of peers as series of logarithms around their centre, and several figures together where a common
// cause slows all of them. Names nobody.
#pragma once

#include <cstddef>
#include <vector>

#include "lab/fleet/judge/table.h"

namespace weir::fleet {

// One figure, or several together, among the devices of a group.
struct Series {
  std::size_t group = 0;
  Concern concern = Concern::speed;
  std::size_t kind = 0;                // figure_kinds().size() for several together
  std::vector<double> badness, noise;  // by device of the group, in the order of `rows`
  double threshold = 0;                // in logarithms
  bool is_single() const { return kind < figure_kinds().size(); }
};

// Adds the series of the devices in `rows`, and fills the figures of the group.
void add_series(const JudgeTable& table, const std::vector<std::size_t>& rows, double threshold, PeerGroup& group,
                std::size_t group_at, std::vector<Series>& series);

}  // namespace weir::fleet
