// Are streams with equal work served equally while the device is full? By experiment, and its document;
// src/trace/analyse/service.h asks the same of a timeline. Prints nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"
#include "lab/queues/queues_document.h"

namespace weir {

struct FairnessRequest {
  int streams = 32;
  int repetitions = 5;
  bool has_mixed_priorities = false;  // stream i at the i-th of the device's priorities, round and round
  std::int64_t block_ns = 200'000;
  int most_commands = 512;  // in all: they must fit into the queues behind one held kernel
};

// What one stream got while all streams had work.
struct StreamService {
  int priority = 0;
  double share = 0;  // of the mean: 1 is fair
  bool is_starved = false;
};

struct FairnessProbe {
  Known<double> jain;                  // of the shares' means over repetitions
  std::vector<double> jain_by_run;     // of each repetition
  std::vector<StreamService> streams;  // means over repetitions
  double window_ns = 0;                // median: how long all streams had work
  int commands_per_stream = 0;
  int blocks_per_command = 0;
  int blocks_at_once = 0;  // of the device, by experiment
  bool was_queued_ahead = true;
};
FairnessProbe measure_fairness(Device& device, const FairnessRequest& request);

inline constexpr double kStarvedShare = 0.1;  // of the mean

// Time that each stream's blocks ran, from the first start of all to the moment at which the first stream has no more
// work. Empty where a stream has no moment or nothing ran.
struct Service {
  std::vector<double> ns;  // by stream
  double window_ns = 0;
};
Service service_of(std::span<const std::vector<Moment>> blocks_by_stream);

// Shares of the mean, and who is starved. Priorities are the caller's to fill in.
std::vector<StreamService> shares_of(std::span<const double> service_ns);

// A weir.queues/1 document with the member "fairness".
Json measure_fairness_document(Device& device, const FairnessRequest& request, const RunContext& context);

Json to_json(const FairnessProbe& probe);

}  // namespace weir
