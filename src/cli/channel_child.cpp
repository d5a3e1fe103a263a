#include "cli/channel_child.h"

#include <fmt/format.h>

#include <exception>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "cli/talking_process.h"
#include "lab/channels/channel_results.h"
#include "lab/channels/loops/benchmark.h"

namespace weir::cli {
namespace {

using channel_bench::Benchmark;
using channel_bench::Conditions;
using channel_bench::Group;
using channel_bench::Measurement;

Measurement run_one(const Benchmark& benchmark, const Conditions& conditions) {
  Measurement failed;
  if (!benchmark.unavailable.empty()) {
    failed.failure = benchmark.unavailable;
    return failed;
  }
  try {
    return benchmark.run(conditions);
  } catch (const std::exception& error) {
    failed.failure = error.what();
  }
  return failed;
}

}  // namespace

int run_channel_child(const std::string& file) {
  const Json request = read_json(file);
  if (!request.is_object() || !request.contains("benchmarks") || !request["benchmarks"].is_array() ||
      !request.contains("conditions"))
    reject(fmt::format("--child {}: is no request of weir channel", file));
  const Conditions conditions = conditions_from(request["conditions"], file);
  const ToParent parent;
  std::map<std::string, std::vector<Benchmark>> made;  // by group; only those that are asked for
  for (const Json& wanted : request["benchmarks"]) {
    const std::string id = wanted.is_string() ? wanted.get<std::string>() : "";
    const std::string name = id.substr(0, id.find('/'));
    parent.tell({{"begins", id}});  // before its group is made: that may fail as well
    const Benchmark* chosen = nullptr;
    for (const Group& group : channel_bench::groups()) {
      if (group.name != name) continue;
      if (!made.contains(name)) made[name] = group.benchmarks(conditions);
      for (const Benchmark& benchmark : made[name])
        if (benchmark.id() == id) chosen = &benchmark;
    }
    if (chosen == nullptr) reject(fmt::format("--child {}: there is no benchmark '{}'", file, id));
    parent.tell({{"ends", id}, {"measurement", to_json(run_one(*chosen, conditions))}});
  }
  return 0;
}

}  // namespace weir::cli
