// Runs a model of a trace again in virtual time, as it was or with something changed. Exact and deterministic; knows no
// timeline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lab/advise/replay_model.h"

namespace weir::advise {

// What is different. Empty lists: nothing.
struct Change {
  std::int64_t queues = 0;                     // hardware queues per device; 0: as the program ran
  double host = 1;                             // factor on the time of all that the host does
  double beyond = 0.5;                         // as in share_device()
  std::vector<double> work;                    // by command: factor on its duration
  std::vector<std::uint8_t> no_wait;           // by action: it does not wait
  std::vector<std::uint8_t> waits_for_nobody;  // by command: its edges do not count, its stream's order does
  bool is_data_ready = false;                  // nobody waits for data
  std::vector<std::uint32_t> graph;            // by action: the launch of a graph that it becomes part of; kNone: none
  std::vector<std::uint32_t> next;             // by action: the one that follows it on its thread; kNone: none
  std::vector<std::int32_t> urgency;           // by stream, instead of the model's
  std::shared_ptr<const ReplayModel> instead;  // of the model: the same commands and actions, in another order
  std::int64_t graph_launch_ns = 8000;         // the host's time for the launch of a graph
  std::int64_t graph_gap_ns = 450;             // between commands of one stream in a graph (H200, November 2026: 420)
};

struct Replayed {
  std::vector<std::int64_t> started_ns, ended_ns;  // by command, from the origin
  std::vector<std::int64_t> action_ns;             // by action: when its call began
  std::int64_t finish_ns = 0;                      // the last end of a command
  bool is_stuck = false;                           // some command never became ready: the model contradicts itself
};

Replayed replay(const ReplayModel& model, const Change& change = {});

}  // namespace weir::advise
