// Queues at one moment as rows: what is known of each, and why something is not. Knows no source and no terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::watch {

// A number that a source may not know.
struct Figure {
  std::optional<double> value;
  bool is_at_least = false;  // the value is a lower bound, and `reason` says why
  std::string reason;        // why there is no value
};
inline Figure known(double value) { return {value, false, {}}; }
inline Figure at_least(double value, std::string reason) { return {value, true, std::move(reason)}; }
inline Figure unknown(std::string reason) { return {std::nullopt, false, std::move(reason)}; }

// One hardware queue, or a stream where the source does not know its queue.
struct Row {
  std::string key;     // the same queue has the same key in every sample; unique within one
  std::string label;   // for people; may hold any bytes that a driver or a file gave
  std::string device;  // "gpu f7bc", "cuda:0"
  std::string kind;    // compute, sdma, copy, host, stream, ...
  std::optional<int> pid;
  std::optional<bool> is_active;
  std::string active_reason;         // why that is not known
  std::optional<bool> is_mapped;     // KFD: it has a hardware slot now
  std::optional<bool> is_preempted;  // KFD: in mid-kernel, its waves are saved
  Figure backlog;                    // written and not yet read, or submitted and not yet started
  Figure most_backlog;               // within the window
  Figure priority;
  std::string priority_text;  // "7 medium"; empty: the number says it all
  Figure streams;
  Figure kernels_per_s, commands_per_s, packets_per_s;
  Figure busy;  // part of the window, 0 to 1
  // Since the watch began: what counters are made of.
  Figure kernels, commands, packets;
};

// Something about the whole device: utilisation, power, memory.
struct Fact {
  std::string name;  // utilisation, power, ...
  std::string unit;  // ratio, watts, bytes, celsius, hertz
  std::string help;  // one sentence: of what
  Figure figure;
};

// A part of the source that could not be read.
struct Missing {
  std::string part, path, reason, hint;
};

// What a queue's entries are, as the source counts them.
enum class Unit : std::uint8_t { packets, commands };

struct Sample {
  std::string source;        // "kfd", "device"
  std::string device;        // as its user names it; empty: all GPUs that the source shows
  std::string model;         // of the device, where it is one
  std::string workload;      // empty: none of ours runs
  std::uint64_t number = 0;  // from 1 on
  std::int64_t taken_ns = INT64_MIN;
  std::optional<std::int64_t> window_ns;  // what rates and shares are taken over
  bool is_virtual = false;                // the window is of simulated time
  Unit unit = Unit::commands;             // of the backlog
  std::vector<Row> rows;
  std::vector<Fact> facts;
  std::vector<std::string> notes;
  std::vector<Missing> missing;
};

}  // namespace weir::watch
