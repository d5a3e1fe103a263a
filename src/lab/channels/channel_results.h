// The measurements of `weir channel`: for each benchmark the results of each process, and their summary. Knows no
// process and no file; child processes also report in the JSON form of a measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/channels/loops/benchmark.h"
#include "measure/modes.h"

namespace weir {

// One benchmark in one process.
struct ChannelMeasurement {
  int process = 0;  // from 0
  channel_bench::Measurement found;
};

struct ChannelResult {
  std::string group, name, contestant;
  bool is_ours = true;
  channel_bench::Unit unit = channel_bench::Unit::ns_per_operation;
  std::string what;
  std::optional<channel_bench::Target> target;
  std::string unavailable;  // why it was not run
  std::vector<ChannelMeasurement> measurements;

  std::string id() const { return group + "/" + name + "/" + contestant; }
};

// The summary of one benchmark over all processes. Values are in the benchmark's unit.
struct ChannelSummary {
  std::vector<double> medians;                        // of each process that has samples, in their order
  std::optional<double> value;                        // median of these
  std::optional<double> low, high;                    // the smallest and largest of these
  std::optional<double> p50_ns, p99_ns;               // medians over processes
  std::optional<Modes> modes;                         // of all samples
  std::uint64_t sent = 0, received = 0;               // commands
  int failures = 0;                                   // processes in which it failed
  std::string failure;                                // the first failure
  std::vector<std::pair<std::string, double>> facts;  // medians over processes
};
ChannelSummary summarise(const ChannelResult& result);

// The settings of a run that a comparison has to check.
struct ChannelSettings {
  channel_bench::Conditions conditions;
  std::string placement = "auto";  // as in --cores
  int processes = 0;               // as requested
};

struct ChannelRun {
  std::string created;
  std::string status = "complete";  // or interrupted
  ChannelSettings settings;
  Json environment = Json::object();
  std::vector<ChannelResult> results;

  const ChannelResult* find(std::string_view id) const;
};

// The JSON names of units: ns_per_operation, ns_in_all, per_second.
const char* name_of(channel_bench::Unit unit);
std::optional<channel_bench::Unit> unit_named(std::string_view name);

Json to_json(const channel_bench::Measurement& measurement);
// Rejects anything that is no measurement; `where` names it in the message. The result has finite and positive samples,
// or a failure.
channel_bench::Measurement measurement_from(const Json& json, const std::string& where);

Json to_json(const channel_bench::Conditions& conditions);
channel_bench::Conditions conditions_from(const Json& json, const std::string& where);

}  // namespace weir
