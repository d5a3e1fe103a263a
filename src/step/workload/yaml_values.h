// The values of a YAML workload's names while its step is built, and messages about invalid ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "step/workload/yaml_definition.h"

namespace weir {

class YamlValues {
 public:
  YamlValues(const YamlDefinition& definition, const Params& params, int stream_count);

  // The number of enclosing loops, and the current iteration of each.
  void set_level(std::size_t level) { level_ = level; }
  void set_loop(std::size_t level, std::int32_t iteration) { values_[first_loop_ + level] = iteration; }
  std::int32_t loop(std::size_t level) const { return static_cast<std::int32_t>(values_[first_loop_ + level]); }
  double variable(std::size_t index) const { return values_[index]; }

  // Rejects, naming the place and the iteration of its loops.
  [[noreturn]] void refuse(const YamlPlace& place, const std::string& what, std::string hint = {}) const;

  double value(const YamlExpression& given) const;
  // `initial` if nothing is given. Rejects values beyond +-`largest`.
  float number(const std::optional<YamlExpression>& given, double initial, double largest) const;
  // Rejects values out of range, or not whole (suggesting the nearest parameters that fix it). `what` names the value.
  std::int64_t whole(const YamlPlace& place, const Expression& expression, std::int64_t lowest, std::int64_t highest,
                     std::string_view what) const;

 private:
  std::string nearest_hint(const Expression& expression, std::int64_t lowest, std::int64_t highest) const;

  const YamlDefinition& definition_;
  std::vector<double> values_;
  std::size_t first_loop_ = 0;
  std::size_t level_ = 0;
};

}  // namespace weir
