// The likely cause of a slow device, node or place: what its documents show to be different from its peers', where that
// can explain what is slow. Names no cause that the data does not show.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/fleet/judge/facts.h"
#include "lab/fleet/judge/slow.h"

namespace weir::fleet {

class Causes {
 public:
  Causes(const JudgeTable& table, const std::vector<FactColumn>& facts, const FleetReport& report);
  // "clock 1,410 MHz where they have 1,755"; empty where nothing explains it.
  std::string of(const SlowUnit& unit) const;

 private:
  std::string of_throttling(const SlowUnit& unit) const;
  std::string of_fact(const SlowUnit& unit, std::size_t fact_at) const;
  std::string of_neighbours(const SlowUnit& unit) const;
  double typical(const SlowUnit& unit, std::size_t kind) const;

  const JudgeTable& table_;
  std::vector<const FactColumn*> facts_;
  const FleetReport& report_;
  std::vector<std::vector<std::size_t>> members_;                         // by group: rows
  std::vector<std::vector<std::map<std::size_t, std::size_t>>> holders_;  // by group and fact: value and count
};

}  // namespace weir::fleet
