// The queues at one moment, as rows: known values, and reasons for unknown ones. Knows no source and no terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::watch {

// A number that may be unknown to the source.
struct SampleValue {
  std::optional<double> value;
  bool is_at_least = false;  // the value is a lower bound; `reason` explains why
  std::string reason;        // why there is no value
};
inline SampleValue known(double value) { return {value, false, {}}; }
inline SampleValue at_least(double value, std::string reason) { return {value, true, std::move(reason)}; }
inline SampleValue unknown(std::string reason) { return {std::nullopt, false, std::move(reason)}; }

// One hardware queue, or one stream where the source does not know its queue.
struct Row {
  std::string key;     // identifies the queue in all samples; unique within one sample
  std::string label;   // for display; may contain any bytes from a driver or a file
  std::string device;  // "gpu f7bc", "cuda:0"
  std::string kind;    // compute, sdma, copy, host, stream, ...
  std::optional<int> pid;
  std::optional<bool> is_active;
  std::string active_reason;         // why is_active is not known
  std::optional<bool> is_mapped;     // KFD: it has a hardware slot now
  std::optional<bool> is_preempted;  // KFD: preempted mid-kernel, its waves are saved
  SampleValue backlog;               // written and not yet read, or submitted and not yet started
  SampleValue most_backlog;          // within the window
  SampleValue priority;
  std::string priority_text;  // "7 medium"; empty: the number is enough
  SampleValue streams;
  SampleValue kernels_per_s, commands_per_s, packets_per_s;
  SampleValue busy;  // fraction of the window, 0 to 1
  // Totals since the watch began, for counters.
  SampleValue kernels, commands, packets;
};

// A value of the whole device: utilisation, power, memory.
struct Fact {
  std::string name;  // utilisation, power, ...
  std::string unit;  // ratio, watts, bytes, celsius, hertz
  std::string help;  // one sentence: what is measured
  SampleValue figure;
  std::string device = {};  // "gpu f7bc"; empty: the sample's
};

// What a process takes of a GPU.
struct ProcessUse {
  int pid = 0;
  std::string name;    // may contain any bytes
  std::string device;  // "gpu f7bc"
  SampleValue memory_bytes;
  SampleValue compute_units;  // that have waves of it now
  SampleValue busy;           // fraction of the window in which its busiest engine ran, 0 to 1
  SampleValue evictions;      // of its queues, since the watch began
  SampleValue evicted_ns;     // since it started
};

// A part of the source that could not be read.
struct Missing {
  std::string part, path, reason, hint;
};

// What the source counts as a queue's entries.
enum class Unit : std::uint8_t { packets, commands };

struct Sample {
  std::string source;        // "kfd", "device"
  std::string device;        // the user's name for it; empty: all GPUs that the source shows
  std::string model;         // the device's model, if there is one device
  std::string workload;      // empty: Weir runs no workload
  std::uint64_t number = 0;  // from 1 on
  std::int64_t taken_ns = INT64_MIN;
  std::optional<std::int64_t> window_ns;  // the period of rates and shares
  bool is_virtual = false;                // the window is in simulated time
  Unit unit = Unit::commands;             // unit of the backlog
  std::vector<Row> rows;
  std::vector<Fact> facts;
  std::vector<ProcessUse> processes;
  std::vector<std::string> notes;
  std::vector<Missing> missing;
};

}  // namespace weir::watch
