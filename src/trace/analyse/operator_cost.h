// What an operator of a framework has to do at least: its flop and bytes, from its name and the shapes of its inputs.
// Knows the operators of PyTorch; never looks at times or devices.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trace/analyse/operator_inputs.h"

namespace weir {

// Bytes count each input as read once and each output as written once, so they are the least that must move. Values
// are exact for a call, or missing with the reason.
struct OperatorCost {
  std::optional<double> flop, bytes;
  NumberType type = NumberType::f32;  // in which it computes
  bool is_matrix = false;             // the flop are those of matrix products, which matrix units compute
  std::string reason;                 // why something is missing, or in which respect the cost is an estimate
};

OperatorCost operator_cost(std::string_view name, std::string_view shapes);

}  // namespace weir
