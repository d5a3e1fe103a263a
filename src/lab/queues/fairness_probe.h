// Measures whether streams with equal work are served equally while the device is full, and makes a document of it.
// src/trace/analyse/service.h answers the same question for a timeline. Prints nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"
#include "lab/queues/queues_document.h"

namespace weir {

struct FairnessRequest {
  int streams = 32;
  int repetitions = 5;
  bool has_mixed_priorities = false;  // streams take the device's priorities in turn
  std::int64_t block_ns = 200'000;
  int max_commands = 512;  // in total: they must fit into the queues behind one held kernel
};

// The service of one stream while all streams had work.
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
  int blocks_at_once = 0;  // capacity of the device, by experiment
  bool was_queued_ahead = true;
};
FairnessProbe measure_fairness(Device& device, const FairnessRequest& request);

inline constexpr double kStarvedShare = 0.1;  // of the mean

// The time during which each stream's blocks ran, from the first start of all until the first stream runs out of work.
// Empty if a stream has no moment or nothing ran.
struct Service {
  std::vector<double> ns;  // by stream
  double window_ns = 0;
};
Service service_of(std::span<const std::vector<Moment>> blocks_by_stream);

// Shares of the mean, and which streams are starved. The caller fills in the priorities.
std::vector<StreamService> shares_of(std::span<const double> service_ns);

// A weir.queues/2 document with the member "fairness".
Json measure_fairness_document(Device& device, const FairnessRequest& request, const RunContext& context);

Json to_json(const FairnessProbe& probe);

}  // namespace weir
