#include "step/workload/yaml_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace weir {
namespace {

std::size_t shared_loops(const YamlCommand& one, const YamlCommand& other) {
  const std::size_t most = std::min(one.loops.size(), other.loops.size());
  std::size_t shared = 0;
  while (shared < most && one.loops[shared] == other.loops[shared]) ++shared;
  return shared;
}

// Nodes are the instances, then one per group: all instances of a command within the same iterations of some outer
// loops. Waiting for a group costs one edge, whatever its size.
class Order {
 public:
  Order(const YamlDefinition& definition, std::span<const YamlInstance> instances, std::span<const std::int32_t> values)
      : definition_(definition), instances_(instances), values_(values), next_(instances.size()) {}

  std::vector<std::uint32_t> run() {
    add_groups();
    add_waits();
    std::vector<std::uint32_t> waits(next_.size(), 0);
    for (const auto& successors : next_)
      for (const std::uint32_t after : successors) ++waits[after];

    // Groups first, because they block others and are not commands; then file order.
    const auto rank = [&](std::uint32_t node) { return is_group(node) ? std::int64_t{-1} : std::int64_t{node}; };
    const auto is_later = [&](std::uint32_t a, std::uint32_t b) { return rank(a) > rank(b); };
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(is_later)> ready(is_later);
    for (std::uint32_t node = 0; node < next_.size(); ++node)
      if (waits[node] == 0) ready.push(node);
    std::vector<std::uint32_t> order;
    order.reserve(instances_.size());
    while (!ready.empty()) {
      const std::uint32_t node = ready.top();
      ready.pop();
      if (!is_group(node)) order.push_back(node);
      for (const std::uint32_t after : next_[node])
        if (--waits[after] == 0) ready.push(after);
    }
    if (order.size() != instances_.size()) reject_cycle(waits);
    return order;
  }

 private:
  using Key = std::vector<std::int32_t>;  // command, number of loops, their values

  bool is_group(std::uint32_t node) const { return node >= instances_.size(); }

  Key key_of(std::size_t command, std::size_t loops, const YamlInstance& instance) const {
    Key key = {static_cast<std::int32_t>(command), static_cast<std::int32_t>(loops)};
    const auto values = values_.subspan(instance.first_value, loops);
    key.insert(key.end(), values.begin(), values.end());
    return key;
  }

  void add_groups() {
    std::vector<std::set<std::size_t>> depths(definition_.commands.size());
    for (const YamlCommand& command : definition_.commands)
      for (const std::size_t before : command.after_commands)
        depths[before].insert(shared_loops(command, definition_.commands[before]));
    for (std::uint32_t i = 0; i < instances_.size(); ++i) {
      for (const std::size_t depth : depths[instances_[i].command]) {
        const auto [group, is_new] = groups_.emplace(key_of(instances_[i].command, depth, instances_[i]),
                                                     static_cast<std::uint32_t>(next_.size()));
        if (is_new) next_.emplace_back();
        next_[i].push_back(group->second);
      }
    }
  }

  void add_waits() {
    for (std::uint32_t i = 0; i < instances_.size(); ++i) {
      const YamlCommand& command = definition_.commands[instances_[i].command];
      for (const std::size_t before : command.after_commands) {
        const std::size_t depth = shared_loops(command, definition_.commands[before]);
        const auto group = groups_.find(key_of(before, depth, instances_[i]));
        if (group != groups_.end()) next_[group->second].push_back(i);
      }
    }
  }

  // Every waiting node has a waiting predecessor, so walking back must close a cycle.
  [[noreturn]] void reject_cycle(const std::vector<std::uint32_t>& waits) const {
    std::vector<std::uint32_t> before(next_.size(), 0);
    std::uint32_t start = 0;
    for (std::uint32_t node = 0; node < next_.size(); ++node) {
      if (waits[node] == 0) continue;
      start = node;
      for (const std::uint32_t after : next_[node])
        if (waits[after] != 0) before[after] = node;
    }
    std::vector<bool> is_seen(next_.size(), false);
    while (!is_seen[start]) {
      is_seen[start] = true;
      start = before[start];
    }
    std::vector<std::uint32_t> cycle;
    std::uint32_t node = start;
    do {
      if (!is_group(node)) cycle.push_back(instances_[node].command);
      node = before[node];
    } while (node != start);
    // Start with the command that comes first in the file.
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    cycle.push_back(cycle.front());
    std::string names, lines;
    constexpr std::size_t kMaxShown = 12;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      if (cycle.size() > kMaxShown && i == kMaxShown - 1) names += " -> ...";
      if (cycle.size() > kMaxShown && i >= kMaxShown - 1 && i + 1 != cycle.size()) continue;
      const YamlCommand& command = definition_.commands[cycle[i]];
      names += fmt::format("{}'{}'", i == 0 ? "" : " -> ", shown(command.name));
      if (i + 1 != cycle.size()) lines += fmt::format("{}{}", i == 0 ? "" : ", ", command.place.line);
    }
    const YamlCommand& first = definition_.commands[cycle.front()];
    const YamlPlace place{first.place.file, first.place.line, first.place.path + ".after"};
    if (cycle.size() == 2) place.refuse(fmt::format("command {} waits for itself", names), "Take it out of `after`.");
    place.refuse(fmt::format("commands {} wait for each other", names),
                 fmt::format("They are on lines {}. Take one of them out of `after`.", lines));
  }

  const YamlDefinition& definition_;
  std::span<const YamlInstance> instances_;
  std::span<const std::int32_t> values_;
  std::vector<std::vector<std::uint32_t>> next_;
  std::map<Key, std::uint32_t> groups_;
};

}  // namespace

std::vector<std::uint32_t> issue_order(const YamlDefinition& definition, std::span<const YamlInstance> instances,
                                       std::span<const std::int32_t> loop_values) {
  const bool is_ordered = std::any_of(definition.commands.begin(), definition.commands.end(),
                                      [](const YamlCommand& command) { return !command.after_commands.empty(); });
  if (is_ordered) return Order(definition, instances, loop_values).run();
  std::vector<std::uint32_t> order(instances.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace weir
