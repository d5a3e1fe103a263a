// One benchmark of `weir channel`: what it measures, its target, and how it is run. Groups make them, the harness runs
// them. Knows no file, no process and no text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

namespace weir::channel_bench {

enum class Unit : std::uint8_t {
  ns_per_operation,  // less is better
  ns_in_all,         // for everything that the benchmark does; less is better
  per_second,        // more is better
};
constexpr bool is_less_better(Unit unit) { return unit != Unit::per_second; }

// A target of the requirements document: "send < 100 ns".
struct Target {
  double limit = 0;  // in the benchmark's unit: a maximum if less is better, otherwise a minimum
  std::string text;  // as its author wrote it
};

// How benchmarks are run; shared by all benchmarks of a process.
struct Conditions {
  std::vector<int> cores;  // threads are bound to these in turn, thread i to cores[i % size]; empty: not bound
  int samples = 10;        // per benchmark
  double sample_ms = 5;    // approximate time of one sample if the number of operations is free
  std::size_t capacity = 1024;
  std::string device = "cpu";  // for groups that run kernels
  std::uint64_t seed = 1;
};

// The result of one run of a benchmark.
struct Measurement {
  std::vector<double> samples;  // in the benchmark's unit
  // Of single operations if each was timed (round trips), pooled over the samples; nothing otherwise.
  std::optional<double> p50_ns, p99_ns;
  std::uint64_t sent = 0, received = 0;               // commands, over all samples; must be equal
  bool is_checksum_right = true;                      // of what was received
  std::string failure;                                // why there are no samples
  std::vector<std::pair<std::string, double>> facts;  // other counts: "missed", "allocations", "parks"
};

struct Benchmark {
  std::string group;       // file and CLI name: round_trip
  std::string name;        // within the group, without the contestant: "small", "batch/1000"
  std::string contestant;  // spsc, mutex_deque, boost_spsc, floor ...: selected by --channel
  bool is_ours = true;     // false: third-party, a floor, or a reference
  Unit unit = Unit::ns_per_operation;
  std::string what;  // one line: which threads do what
  std::optional<Target> target;
  std::function<Measurement(const Conditions&)> run;
  std::string unavailable;  // why it cannot run here: too few cores, no GPU, not compiled in

  // "round_trip/small/spsc": stable, so that baselines can be matched.
  std::string id() const { return group + "/" + name + "/" + contestant; }
};

// One file of this folder.
struct Group {
  std::string name;
  std::string summary;
  std::string seed;                                    // its name in the requested list of nine; empty for Weir's own
  std::vector<Benchmark> (*enter)(const Conditions&);  // all of them, without the name of the group

  std::vector<Benchmark> benchmarks(const Conditions& conditions) const {
    std::vector<Benchmark> all = enter(conditions);
    for (Benchmark& benchmark : all) benchmark.group = name;
    return all;
  }
};

std::span<const Group> groups();

}  // namespace weir::channel_bench
