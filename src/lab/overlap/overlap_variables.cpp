// `env:` of overlap configs: variables of the environment, each with one value or a list of them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "lab/overlap/overlap_config.h"

namespace weir {
namespace {

// env: {NCCL_ALGO: [Ring, Tree], NCCL_NTHREADS: 256, NCCL_PROTO: [~, LL128]}
std::optional<std::string> value_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::null) return std::nullopt;
  const std::string& text = node.scalar("one value, or a list of values");
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

void read_overlap_variables(const YamlNode& section, OverlapConfig& config) {
  for (const YamlNode& item : section.map("variables with values: {NCCL_ALGO: [Ring, Tree]}")) {
    VariableAxis axis{item.key, {}};
    if (item.kind == YamlNode::Kind::list) {
      for (const YamlNode& value : item.items) axis.values.push_back(value_of(value));
    } else {
      axis.values.push_back(value_of(item));
    }
    add_variable_axis(config.variables, std::move(axis), item.place.text());
  }
}

void check_queue_variables(const OverlapConfig& config) {
  const bool sets_queues =
      config.value("run.hw_queues") != "0" ||
      std::ranges::any_of(config.sweeps, [](const auto& sweep) { return sweep.first == "run.hw_queues"; });
  if (!sets_queues) return;
  for (const VariableAxis& axis : config.variables)
    if (std::ranges::find(kQueueVariables, axis.name) != std::end(kQueueVariables))
      reject(fmt::format("{}: run.hw_queues sets this variable too", axis.name),
             "Leave out one of them; --set run.hw_queues=0 keeps the device's number.");
}

void replace_variables(std::vector<VariableAxis>& axes, const std::vector<VariableAxis>& others) {
  std::erase_if(axes, [&](const VariableAxis& axis) {
    return std::any_of(others.begin(), others.end(),
                       [&](const VariableAxis& other) { return other.name == axis.name; });
  });
  axes.insert(axes.end(), others.begin(), others.end());
}

std::vector<std::string> OverlapPoint::names() const {
  std::vector<std::string> names = assignments;
  for (const auto& [name, value] : variables)
    if (const auto axis = std::find_if(config.variables.begin(), config.variables.end(),
                                       [&, &wanted = name](const VariableAxis& each) { return each.name == wanted; });
        axis != config.variables.end() && axis->values.size() > 1)
      names.push_back(words_for({{name, value}}));
  return names;
}

// A value may hold anything: "NCCL_TOPO_FILE=/etc/topo.xml" becomes "NCCL_TOPO_FILE=_etc_topo.xml".
std::string OverlapPoint::folder_name() const {
  std::string folder;
  for (const std::string& name : names()) folder += (folder.empty() ? "" : ",") + name;
  for (char& c : folder)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("._-=,:+").find(c) == std::string_view::npos)
      c = '_';
  constexpr std::size_t kLongest = 200;  // file systems allow 255 bytes
  return folder.size() <= kLongest ? folder : fmt::format("{}-{}", folder.substr(0, kLongest), number);
}

}  // namespace weir
