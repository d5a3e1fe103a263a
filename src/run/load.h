// Reads result files into points that can be compared: Weir's own and AORTA's. Knows file formats; judges nothing.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir {

// Samples of one metric. Where `samples` is empty, `reason` says why.
struct SampleSeries {
  std::vector<double> samples;
  std::string unit;
  std::string reason;
  bool is_expected_missing = false;  // the run's settings rule this metric out, so its absence is no finding
};

// One measured configuration. Two points are comparable when their keys agree.
struct ResultPoint {
  // "workload", "streams", "submit", "placement", "sync_mode", "precision", "ranks", "compute_units" where streams
  // were confined, and "param.NAME" for each parameter. A name that is not there is not known.
  std::map<std::string, std::string> key;
  bool is_key_complete =
      true;                 // false: the format does not record everything (AORTA), so an absent name proves nothing
  std::string device;       // as --device takes it: "cpu", "cuda:0"; empty where the file does not say
  std::string failure;      // empty, or why the numbers must not be used: the run failed, its output was wrong
  SampleSeries latency;     // nanoseconds per iteration
  SampleSeries throughput;  // the workload's unit, per iteration
  // What may explain a difference: "device.model", "weir.version", "environment.driver", ...
  std::map<std::string, std::string> settings;
  std::vector<std::string> notes;
  std::string origin;  // "results.json: results[3]"
};

struct ResultFile {
  std::string name;
  std::vector<ResultPoint> points;
  std::vector<std::string> notes;
};

// A result, a sweep, or a folder whose *.json files are results. Rejects what is none of these, and says what it found.
// Files in a folder that hold something else are passed over with a note; broken ones are rejected there too.
ResultFile load_results(const std::filesystem::path& path);

// The same for JSON that is already parsed; `name` stands for the file in messages.
ResultFile parse_results(const Json& json, const std::string& name);

}  // namespace weir
