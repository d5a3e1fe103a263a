// Orders the commands of a YAML workload as `after` requires. Knows no kernel and no buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "step/workload/yaml_definition.h"

namespace weir {

// One command after loops were expanded. Its loop variables begin at `first_value` of a list shared by all.
struct YamlInstance {
  std::uint32_t command = 0;
  std::uint32_t first_value = 0;
};

// The order of issue: that of the file, changed only where `after` requires it. A command waits for the instances of
// another that share the loops around both. Rejects a cycle by names and lines.
std::vector<std::uint32_t> issue_order(const YamlDefinition& definition, std::span<const YamlInstance> instances,
                                       std::span<const std::int32_t> loop_values);

}  // namespace weir
