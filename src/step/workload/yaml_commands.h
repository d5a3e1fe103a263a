// Reads the `commands` of a YAML workload: kernels, copies, loops, operands. Evaluates nothing.
#pragma once

#include <span>
#include <string>

#include "step/workload/yaml_definition.h"

namespace weir {

// `variables` are the names that an expression may use here.
YamlExpression read_expression(const YamlNode& node, std::span<const std::string> variables);

// Fills commands, items, roles and loop levels of `definition`, whose buffers must already be known.
void read_commands(const YamlNode& root, std::span<const std::string> variables, YamlDefinition& definition);

}  // namespace weir
