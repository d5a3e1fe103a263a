#include "submit/placement.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace weir {
namespace {

Placement on_streams(std::string name, int stream_count, std::size_t commands) {
  return {std::move(name), stream_count, std::vector<StreamId>(commands, 0)};
}

// The workload's own streams.
Placement natural(const Step& step) {
  Placement placement = on_streams("natural", step.stream_count(), step.commands().size());
  for (std::size_t i = 0; i < step.commands().size(); ++i) placement.stream_of[i] = step.commands()[i].stream;
  return placement;
}

// All on one stream: the baseline without overlap.
Placement serial(const Step& step) { return on_streams("serial", 1, step.commands().size()); }

// Each command goes to the next stream, regardless of data.
Placement round_robin(const Step& step) {
  Placement placement = on_streams("round_robin", step.stream_count(), step.commands().size());
  for (std::size_t i = 0; i < placement.stream_of.size(); ++i)
    placement.stream_of[i] = static_cast<StreamId>(i % static_cast<std::size_t>(step.stream_count()));
  return placement;
}

// Longest remaining path first, each command to the stream where it can start earliest (list scheduling by cost).
Placement critical_path(const Step& step) {
  const auto commands = step.commands();
  const std::size_t count = commands.size();
  // Bytes and flop on one scale: current GPUs change from memory bound to compute bound at about 200 flop per byte. The
  // constant keeps tiny commands from being free.
  const auto weight = [&](std::size_t i) {
    double units = 1000;
    if (commands[i].kind == CommandKind::kernel || commands[i].kind == CommandKind::host) {
      const Cost cost = kernel(commands[i].kernel).cost(commands[i].shape);
      units += std::max(cost.flop / 200.0, cost.bytes);
    } else {
      units += 2.0 * static_cast<double>(step.accesses(static_cast<CommandId>(i))[0].size_bytes);
    }
    return units;
  };
  Placement placement = on_streams("critical_path", step.stream_count(), count);
  std::vector<double> stream_free(static_cast<std::size_t>(step.stream_count()), 0.0);
  std::vector<double> ended(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    double ready = 0;
    std::size_t last = count;  // the predecessor that ends last: staying on its stream needs no event
    for (const CommandId before : step.predecessors(static_cast<CommandId>(i))) {
      if (last == count || ended[before] >= ready) last = before;
      ready = std::max(ready, ended[before]);
    }
    std::size_t best = 0;
    double best_start = std::max(ready, stream_free[0]);
    for (std::size_t s = 1; s < stream_free.size(); ++s) {
      const double start = std::max(ready, stream_free[s]);
      if (start < best_start) {
        best = s;
        best_start = start;
      }
    }
    if (last != count) {
      const std::size_t home = placement.stream_of[last];
      if (std::max(ready, stream_free[home]) <= best_start) best = home;
    }
    placement.stream_of[i] = static_cast<StreamId>(best);
    ended[i] = std::max(ready, stream_free[best]) + weight(i);
    stream_free[best] = ended[i];
  }
  return placement;
}

}  // namespace

std::span<const PlacementPolicy> placement_policies() {
  static constexpr std::array kPolicies = {
      PlacementPolicy{"natural", "as the workload lays it out", natural},
      PlacementPolicy{"serial", "all on one stream: no overlap", serial},
      PlacementPolicy{"round_robin", "each command to the next stream", round_robin},
      PlacementPolicy{"critical_path", "each command where it can start earliest", critical_path},
  };
  return kPolicies;
}

const PlacementPolicy& placement_named(std::string_view name) {
  std::vector<std::string> names;
  for (const PlacementPolicy& known : placement_policies()) {
    if (known.name == name) return known;
    names.emplace_back(known.name);
  }
  reject_setting("placement", name, "there is no such placement", suggestion(name, names));
}

}  // namespace weir
