#include "step/workload/yaml_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir {
namespace {

constexpr std::int64_t kMaxLeast = 1'000'000'000;

}  // namespace

YamlValues::YamlValues(const YamlDefinition& definition, const Params& params, int stream_count)
    : definition_(definition) {
  values_ = {static_cast<double>(stream_count), static_cast<double>(params.ranks.count),
             static_cast<double>(params.ranks.rank)};
  for (std::size_t i = 0; i < definition.params.size(); ++i) {
    const ParamSpec& spec = definition.params[i];
    const bool is_whole = std::holds_alternative<std::int64_t>(spec.defaults[0]);
    const double given = is_whole ? static_cast<double>(params.integer(spec.name)) : params.number(spec.name);
    const std::optional<YamlExpression>& least = definition.at_least[i];
    if (!least) {
      values_.push_back(given);
    } else {
      const double lowest = is_whole
                                ? static_cast<double>(whole(least->place, least->expression, 0, kMaxLeast, "the least"))
                                : value(*least);
      values_.push_back(std::max(given, lowest));
    }
  }
  first_loop_ = values_.size();
  values_.resize(first_loop_ + definition.loop_levels, 0);
}

// "... (in iteration 3, 1 of its loops)": which of many commands a line refers to.
void YamlValues::refuse(const YamlPlace& place, const std::string& what, std::string hint) const {
  if (level_ == 0) place.refuse(what, std::move(hint));
  std::string iterations;
  for (std::size_t i = 0; i < level_; ++i) iterations += fmt::format("{}{}", i == 0 ? "" : ", ", loop(i));
  place.refuse(fmt::format("{} (in iteration {} of its loop{})", what, iterations, level_ == 1 ? "" : "s"),
               std::move(hint));
}

double YamlValues::value(const YamlExpression& given) const {
  return given.place.guard([&] { return given.expression.value(values_); });
}

std::int64_t YamlValues::whole(const YamlPlace& place, const Expression& expression, std::int64_t lowest,
                               std::int64_t highest, std::string_view what) const {
  const auto value = expression.try_whole(values_);
  if (!value) {
    try {
      expression.whole(values_);
    } catch (const Error& error) {
      refuse(place, error.what(), nearest_hint(expression, lowest, highest));
    }
  }
  if (*value < lowest || *value > highest)
    refuse(place, fmt::format("{} '{}' is {}", what, expression.text(), *value),
           fmt::format("{} to {} is possible.", lowest, highest));
  return *value;
}

// Finds a single change of a parameter, or of the stream count, that would make it a whole number.
std::string YamlValues::nearest_hint(const Expression& expression, std::int64_t lowest, std::int64_t highest) const {
  constexpr int kFarthest = 20'000;
  std::vector<double> values = values_;
  std::string found;
  const auto add = [&](const std::string& text) { found += (found.empty() ? "" : ", ") + text; };
  const auto search = [&](std::size_t variable, double least, double most, const auto& show) {
    if (!expression.uses(variable)) return;
    const double now = values_[variable];
    for (const int direction : {-1, 1}) {
      for (int distance = 1; distance <= kFarthest; ++distance) {
        values[variable] = now + direction * distance;
        if (values[variable] < least || values[variable] > most) break;
        const auto result = expression.try_whole(values);
        if (!result || *result < lowest || *result > highest) continue;
        add(show(static_cast<std::int64_t>(values[variable])));
        break;
      }
    }
    values[variable] = now;
  };
  for (std::size_t i = 0; i < definition_.params.size(); ++i) {
    const ParamSpec& spec = definition_.params[i];
    if (!std::holds_alternative<std::int64_t>(spec.defaults[0])) continue;
    search(YamlDefinition::kFirstParam + i, spec.lowest, spec.highest,
           [&](std::int64_t value) { return fmt::format("--param {}={}", spec.name, value); });
  }
  search(YamlDefinition::kStreams, definition_.streams.min, definition_.streams.max,
         [](std::int64_t value) { return fmt::format("--streams {}", value); });
  return found.empty() ? "" : fmt::format("The nearest that work: {}.", found);
}

float YamlValues::number(const std::optional<YamlExpression>& given, double initial, double largest) const {
  if (!given) return static_cast<float>(initial);
  const double result = value(*given);
  if (std::fabs(result) > largest)
    refuse(given->place, fmt::format("{} is too large", result), fmt::format("{} at most.", largest));
  return static_cast<float>(result);
}

}  // namespace weir
