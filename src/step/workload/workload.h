// A workload: facts for people, and a function that builds its step. Knows no device, stream or queue.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/cost.h"
#include "step/step.h"
#include "step/workload/params.h"

namespace weir {

struct StreamRange {
  int min = 1, recommended = 1, max = 1;
};

struct Workload {
  std::string name;
  std::string summary;
  std::string category;
  int priority = 0;  // its class: 0 is P0
  std::string unit;  // of Step::work per second
  Scaling scaling = Scaling::grows;
  std::string shows;  // what a run of it should demonstrate
  StreamRange streams;
  std::vector<ParamSpec> params;
  Precision precision = Precision::fp32;  // the default
  std::vector<std::string> roles = {"all"};
  // If set, measures how much longer commands of this role take beside the others than alone.
  std::optional<std::uint8_t> convoy_role;
  // Gives every one of `stream_count` streams work. Rejects sizes that do not fit, and suggests the nearest that do.
  std::function<Step(const Params& params, int stream_count)> build;
  // For a workload read from a file: its name, its text, and a hash of the text. Empty for built-in ones.
  struct Source {
    std::string file, text, hash;
  };
  Source source;
};

std::span<const Workload> workloads();
// Rejects an unknown name with a suggestion.
const Workload& workload_named(std::string_view name);

}  // namespace weir
