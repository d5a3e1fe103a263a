// Reads result files into points that can be compared: Weir's own and AORTA's. Knows file formats; judges nothing.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir {

// Samples of one metric. If `samples` is empty, `reason` explains why.
struct SampleSeries {
  std::vector<double> samples;  // process by process
  std::string unit;
  std::string reason;
  bool is_expected_missing = false;      // the run's settings exclude this metric, so its absence is not a finding
  std::vector<std::size_t> processes{};  // how many samples each process has; empty: all are of one
};

// The start of a key's name for a variable of the environment that was varied: "env.NCCL_ALGO".
inline constexpr const char* kVariable = "env.";

// One measured configuration. Two points are comparable when their keys agree.
struct ResultPoint {
  // "workload", "streams", "submit", "placement", "sync_mode", "precision", "ranks", "compute_units" if streams were
  // confined, "param.NAME" for each parameter, and "env.NAME" for each variable that the point set ("unset": it was
  // not). A missing name means unknown.
  std::map<std::string, std::string> key;
  // False: the format does not record everything (AORTA), so a missing name proves nothing.
  bool is_key_complete = true;
  std::string device;       // as passed to --device: "cpu", "cuda:0"; empty if the file does not record it
  std::string failure;      // empty, or why the numbers must not be used: the run failed, its output was wrong
  SampleSeries latency;     // nanoseconds per iteration
  SampleSeries throughput;  // the workload's unit, per iteration
  // Possible explanations of a difference: "device.model", "weir.version", "environment.driver", ...
  std::map<std::string, std::string> settings;
  std::optional<bool> is_host_bound{};  // submitting takes most of an iteration; empty if the file does not record it
  std::vector<std::string> command{};   // how it was run, "weir" first; empty if the file does not record it
  std::vector<std::string> notes;
  std::string origin;  // "results.json: results[3]"
};

struct ResultFile {
  std::string name;
  std::vector<ResultPoint> points;
  std::vector<std::string> notes;
};

// Loads a result, a sweep, or a folder whose *.json files are results. Rejects anything else, naming what it found.
// Other JSON files in a folder are skipped with a note; broken ones are rejected there too.
ResultFile load_results(const std::filesystem::path& path);

// The same for JSON that is already parsed; `name` stands for the file in messages.
ResultFile parse_results(const Json& json, const std::string& name);

}  // namespace weir
