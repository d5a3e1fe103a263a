#include "step/workload/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"

namespace weir {
namespace {

constexpr std::string_view kScales[] = {"tiny", "small", "full"};

ParamValue parsed(const ParamSpec& spec, const std::string& text) {
  const auto out_of_range = [&] {
    reject_param(spec.name, text, "out of range", fmt::format("Use {} to {}.", spec.lowest, spec.highest));
  };
  if (std::holds_alternative<std::int64_t>(spec.defaults[0])) {
    const auto value = parse_integer(text);
    if (!value) reject_param(spec.name, text, "a whole number is needed");
    if (static_cast<double>(*value) < spec.lowest || static_cast<double>(*value) > spec.highest) out_of_range();
    return *value;
  }
  if (std::holds_alternative<double>(spec.defaults[0])) {
    const auto value = parse_number(text);
    if (!value) reject_param(spec.name, text, "a number is needed");
    if (*value < spec.lowest || *value > spec.highest) out_of_range();
    return *value;
  }
  if (std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end())
    reject_param(spec.name, text, fmt::format("not one of {}", fmt::join(spec.choices, ", ")),
                 suggestion(text, spec.choices));
  return text;
}

}  // namespace

std::string_view name_of(Scale scale) { return kScales[static_cast<int>(scale)]; }

Scale scale_named(std::string_view name) {
  for (const Scale scale : {Scale::tiny, Scale::small, Scale::full})
    if (name_of(scale) == name) return scale;
  reject_setting("scale", name, "there is no such scale", "Use tiny, small or full.");
}

ParamSpec integer_param(std::string name, std::string help, std::array<std::int64_t, 3> defaults, std::int64_t lowest,
                        std::int64_t highest) {
  return {std::move(name),
          std::move(help),
          {defaults[0], defaults[1], defaults[2]},
          static_cast<double>(lowest),
          static_cast<double>(highest),
          {}};
}

ParamSpec number_param(std::string name, std::string help, double initial, double lowest, double highest) {
  return {std::move(name), std::move(help), {initial, initial, initial}, lowest, highest, {}};
}

ParamSpec choice_param(std::string name, std::string help, std::string initial, std::vector<std::string> choices) {
  return {std::move(name), std::move(help), {initial, initial, initial}, 0, 0, std::move(choices)};
}

void reject_param(std::string_view name, const ParamValue& value, std::string_view problem, std::string hint) {
  reject_setting("param", fmt::format("{}={}", name, to_string(value)), problem, std::move(hint));
}

Params::Params(std::span<const ParamSpec> specs, Scale scale,
               std::span<const std::pair<std::string, std::string>> assignments) {
  std::vector<std::string> names;
  for (const ParamSpec& spec : specs) {
    values_[spec.name] = spec.defaults[static_cast<std::size_t>(scale)];
    names.push_back(spec.name);
  }
  for (const auto& [name, text] : assignments) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const ParamSpec& known) { return known.name == name; });
    if (spec == specs.end())
      reject_param(name, text, fmt::format("the workload has no parameter '{}'", name), suggestion(name, names));
    values_[name] = parsed(*spec, text);
  }
}

std::int64_t Params::integer(std::string_view name) const { return std::get<std::int64_t>(values_.find(name)->second); }
double Params::number(std::string_view name) const { return std::get<double>(values_.find(name)->second); }
const std::string& Params::choice(std::string_view name) const {
  return std::get<std::string>(values_.find(name)->second);
}

std::string to_string(const ParamValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

}  // namespace weir
