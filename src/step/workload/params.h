// A workload's parameters: what can be set, the values of each scale, and the user's choices. Knows no workload.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernel/numeric.h"
#include "step/command.h"

namespace weir {

enum class Scale : std::uint8_t { tiny, small, full };

std::string_view name_of(Scale scale);
Scale scale_named(std::string_view name);  // rejects unknown names

using ParamValue = std::variant<std::int64_t, double, std::string>;

// One parameter. Integers and numbers have a range; choices have a list.
struct ParamSpec {
  std::string name;
  std::string help;
  std::array<ParamValue, 3> defaults;  // by scale: tiny, small, full
  double lowest = 0, highest = 0;
  std::vector<std::string> choices;
};

ParamSpec integer_param(std::string name, std::string help, std::array<std::int64_t, 3> defaults, std::int64_t lowest,
                        std::int64_t highest);
ParamSpec number_param(std::string name, std::string help, double initial, double lowest, double highest);
ParamSpec choice_param(std::string name, std::string help, std::string initial, std::vector<std::string> choices);

// Rejects a parameter's value: "param NAME=VALUE: PROBLEM".
[[noreturn]] void reject_param(std::string_view name, const ParamValue& value, std::string_view problem,
                               std::string hint = {});

// All parameters of a workload with their values.
class Params {
 public:
  // Defaults of `scale`, then the user's assignments. Rejects unknown names, wrong types and out-of-range values.
  Params(std::span<const ParamSpec> specs, Scale scale,
         std::span<const std::pair<std::string, std::string>> assignments);

  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& choice(std::string_view name) const;
  const std::map<std::string, ParamValue, std::less<>>& values() const { return values_; }

  Precision precision = Precision::fp32;
  std::uint64_t seed = 1;
  Ranks ranks;

 private:
  std::map<std::string, ParamValue, std::less<>> values_;
};

std::string to_string(const ParamValue& value);

}  // namespace weir
