// Variables of the environment as what is varied: `--env NAME=A,B` and `env:` of configs, their combinations, and how
// documents record them. Drivers and libraries read variables once, so each combination needs processes of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "run/children.h"

namespace weir {

inline constexpr std::size_t kMaxVariedPoints = 1000;  // of a sweep, with all its other values

struct VariableAxis {
  std::string name;
  std::vector<std::optional<std::string>> values;  // nothing: the variable is not set
};
// One value of each axis.
using VariableSetting = std::vector<std::pair<std::string, std::optional<std::string>>>;

// Reads "NAME=A,B,C"; an empty item means "not set", "\," is a comma within a value. Rejects other texts, and a value
// that is listed twice. Any name is allowed, because the program may be the user's own.
VariableAxis parse_variable_axis(const std::string& text);

// Adds an axis for processes of Weir itself; messages begin with `where`. Rejects a name that was given before, one
// that decides which code runs (LD_PRELOAD), one that Weir or a launcher sets itself, and a secret, which no document
// holds.
void add_variable_axis(std::vector<VariableAxis>& axes, VariableAxis axis, const std::string& where);
// All of a command's --env, each as typed; by name.
std::vector<VariableAxis> parse_variable_axes(const std::vector<std::string>& texts);

// Every combination, the last axis fastest; one without variables where there are no axes. Rejects more than
// kMaxVariedPoints, also together with `others`: how many points each combination has.
std::vector<VariableSetting> variable_settings(const std::vector<VariableAxis>& axes, std::size_t others = 1);

// {"NCCL_ALGO": "Ring", "NCCL_PROTO": null}, as documents record it in `set_variables`; null: not set.
Json to_json(const VariableSetting& setting);
// The same as a user would type it, from a document: "NCCL_ALGO=Ring NCCL_PROTO unset"; empty where it has none.
std::string variable_words(const Json& document);
std::string words_for(const VariableSetting& setting);

void apply(const VariableSetting& setting, ChildRequest& child);

}  // namespace weir
