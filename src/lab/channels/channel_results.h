// What `weir channel` has measured: for each benchmark what each process found, and what that amounts to. Knows no
// process and no file; the JSON form of a measurement is also what a child process reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/channels/loops/benchmark.h"
#include "measure/modes.h"

namespace weir {

inline constexpr const char* kChannelSchema = "weir.channel/1";

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

// Of one benchmark over all processes. Values are in the benchmark's unit.
struct ChannelSummary {
  std::vector<double> medians;                        // of each process that has samples, in their order
  std::optional<double> value;                        // median of these
  std::optional<double> low, high;                    // the smallest and largest of these
  std::optional<double> p50_ns, p99_ns;               // medians over processes
  std::optional<Modes> modes;                         // of all samples
  std::uint64_t sent = 0, received = 0;               // commands
  int failures = 0;                                   // processes in which it failed
  std::string failure;                                // the first of them
  std::vector<std::pair<std::string, double>> facts;  // medians over processes
};
ChannelSummary summarise(const ChannelResult& result);

// How a run was made, in what a comparison has to look at.
struct ChannelSettings {
  channel_bench::Conditions conditions;
  std::string placement = "auto";  // as --cores said
  int processes = 0;               // as asked for
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
// Rejects what is no measurement; `where` names it in the message. What comes back has samples that are finite and
// positive, or a failure.
channel_bench::Measurement measurement_from(const Json& json, const std::string& where);

Json to_json(const channel_bench::Conditions& conditions);
channel_bench::Conditions conditions_from(const Json& json, const std::string& where);

}  // namespace weir
