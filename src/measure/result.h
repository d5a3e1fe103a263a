// One run's result: everything needed to believe it, explain it and repeat it. Its JSON form is `weir.result/2`,
// described by docs/schema/weir.result.2.json. Knows no device and no workload; src/run fills it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "measure/statistics.h"

namespace weir {

// Something about the run that a reader should know before trusting a number.
struct Warning {
  std::string code;     // stable, for programs: noisy, drift, throttled, ...
  std::string message;  // the observation, with figures
  std::string advice;   // what to do about it
};

// All samples are kept. A missing list has its reason in Result::unavailable.
struct Samples {
  std::optional<std::vector<double>> latency_ns;   // per iteration, by the host; per_iteration only
  std::optional<std::vector<double>> interval_ns;  // from one iteration to the next: the basis of throughput
  std::optional<std::vector<double>> device_ns;    // first start to last end on the device's clock
  std::optional<std::vector<double>> submit_ns;    // host time from the first to the last submit call
};

struct Throughput {
  double value = 0;  // in the workload's unit
  std::optional<Interval> interval;
};

struct Result {
  std::string status = "complete";  // or interrupted, failed
  std::string failure, hint;        // the reason of a failure, and advice
  Fault fault = Fault::run;         // of the failure, as is `setting` (see Error); not part of the document
  std::string setting;
  Error error() const;  // the failure, to be thrown again
  std::string created;
  std::vector<std::string> command_line;

  std::string workload, category, unit, scaling;
  std::string workload_file, workload_text;  // for a workload that was read from a file
  int priority = 0;
  Json parameters = Json::object();
  std::string precision, scale, submit, placement, sync_mode;
  int streams = 0;
  int iterations = 0, warmup = 0;  // as requested; samples show how many were taken
  std::uint64_t seed = 0;
  Json device = Json::object();
  Json environment = Json::object();

  double work_per_iteration = 0;
  std::uint64_t commands_per_iteration = 0;
  double flop_per_iteration = 0, bytes_per_iteration = 0;
  Samples samples;

  std::optional<Summary> latency_ns;
  std::optional<Summary> device_ns;
  std::optional<Throughput> throughput;
  std::optional<double> commands_per_s;
  std::optional<double> host_ns_per_command;
  std::optional<double> floor_ns_per_command;  // the same on the null device with the same submit mode
  Json metrics = Json::object();  // other metrics by name: concurrency, fairness, convoy, queue_switch, ...

  Json ranks;  // if more than one: count, hosts, each rank's numbers, skew, stragglers
  Json check = Json::object();
  std::vector<Warning> warnings;
  std::map<std::string, std::string> unavailable;  // metric -> reason
};

Json interval_or_null(const std::optional<Interval>& interval);  // [low, high]
Json to_json(const Warning& warning);
Json to_json(const Summary& summary);
Json to_json(const Result& result);

}  // namespace weir
