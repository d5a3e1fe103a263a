// Facts of devices and nodes as columns: versions, settings, and states that are set. Knows which differ and who holds
// what; does not know what they do to speed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/fleet/judge/table.h"

namespace weir::fleet {

struct FactColumn {
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
  std::string name;
  bool is_of_device = false;
  std::vector<std::string> values;  // the most frequent first
  std::vector<std::size_t> counts;  // rows that hold each
  std::vector<std::size_t> held;    // by row: which of `values`, or kNothing
  bool differs() const { return values.size() > 1; }
  // Whether it is a name of its holder rather than a setting: most values are held once.
  bool is_identity() const { return values.size() > 8 && values.size() * 4 > held.size(); }
};

// All facts, by name; those of nodes are held by each of their devices.
std::vector<FactColumn> fact_columns(const JudgeTable& table);

// What is not the same everywhere, and rare values as findings of kind `different`.
void add_differences(const JudgeTable& table, const std::vector<FactColumn>& facts, FleetReport& report);

}  // namespace weir::fleet
