// One benchmark of `weir channel`: what it measures, against which target, and how it is run. Groups make them, the
// harness runs them. Knows no file, no process and no text.
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
  ns_in_all,         // for the whole of what the benchmark does; less is better
  per_second,        // more is better
};
constexpr bool is_less_better(Unit unit) { return unit != Unit::per_second; }

// What the document that we were asked to answer wants: "send < 100 ns".
struct Target {
  double limit = 0;  // in the benchmark's unit: at most where less is better, at least otherwise
  std::string text;  // as its author put it
};

// How a benchmark is to be run: shared by all benchmarks of a process.
struct Conditions {
  std::vector<int> cores;  // that threads are bound to, in turns: thread i to cores[i % size]; empty: not bound
  int samples = 10;        // that a benchmark takes
  double sample_ms = 5;    // about how long one takes where the number of operations is free
  std::size_t capacity = 1024;
  std::string device = "cpu";  // of the groups that run kernels
  std::uint64_t seed = 1;
};

// What one run of a benchmark found.
struct Measurement {
  std::vector<double> samples;  // in the benchmark's unit
  // Of single operations where each was timed (round trips), pooled over the samples; nothing otherwise.
  std::optional<double> p50_ns, p99_ns;
  std::uint64_t sent = 0, received = 0;               // commands, over all samples; must be equal
  bool is_checksum_right = true;                      // of what was received
  std::string failure;                                // why there are no samples
  std::vector<std::pair<std::string, double>> facts;  // counted on the way: "missed", "allocations", "parks"
};

struct Benchmark {
  std::string group;       // file and CLI name: round_trip
  std::string name;        // within the group, without the contestant: "small", "batch/1000"
  std::string contestant;  // spsc, mutex_deque, boost_spsc, floor ...: what --channel chooses
  bool is_ours = true;     // false: other people's, a floor, or a reference
  Unit unit = Unit::ns_per_operation;
  std::string what;  // one line: who does what with which threads
  std::optional<Target> target;
  std::function<Measurement(const Conditions&)> run;
  std::string unavailable;  // why it cannot be run here: too few cores, no GPU, not compiled in

  // "round_trip/small/spsc": stable, so that baselines can be matched.
  std::string id() const { return group + "/" + name + "/" + contestant; }
};

// One file of this folder.
struct Group {
  std::string name;
  std::string summary;
  std::string seed;  // its name in the list of nine that we answer, empty where it is one of ours
  std::vector<Benchmark> (*enter)(const Conditions&);  // all of them, without the name of the group

  std::vector<Benchmark> benchmarks(const Conditions& conditions) const {
    std::vector<Benchmark> all = enter(conditions);
    for (Benchmark& benchmark : all) benchmark.group = name;
    return all;
  }
};

std::span<const Group> groups();

}  // namespace weir::channel_bench
