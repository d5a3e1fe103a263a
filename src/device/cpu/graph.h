// A segment of a step recorded as a graph and replayed on the cpu device: its dependencies, and which commands are
// ready. Knows commands and their order; runs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "device/graph_edges.h"

namespace weir::cpu {

class Graph {
 public:
  static constexpr CommandId kNone = UINT32_MAX;

  // For commands [begin, end); see record_graph().
  Graph(const StepPlan& plan, CommandId begin, CommandId end);

  // The next four are for one thread at a time: the one that drains the queue of graph launches.
  bool is_running() const noexcept { return is_running_; }
  void start() noexcept;
  // The command that became ready first, or kNone.
  CommandId ready() const noexcept {
    return head_ == edges_.count ? kNone : ready_[head_].load(std::memory_order_acquire);  // pairs with make_ready()
  }
  void take_ready() noexcept {
    ready_[head_].store(kNone, std::memory_order_relaxed);  // read again after the next start()
    ++head_;
  }
  // True once, when all commands have ended: then the graph can be started again.
  bool take_end() noexcept;

  // Makes ready the commands that waited only for `command`. For any worker, which must not touch the graph afterwards.
  void end(CommandId command) noexcept;

  std::uint64_t size_bytes() const noexcept;

 private:
  void make_ready(CommandId command) noexcept;

  GraphEdges edges_;                                       // these arrays are indexed by command - begin
  std::unique_ptr<std::atomic<std::uint32_t>[]> missing_;  // predecessors that have not ended
  std::unique_ptr<std::atomic<CommandId>[]> ready_;  // in the order of becoming ready; each command once per launch
  std::uint32_t head_ = 0;
  bool is_running_ = false;
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  alignas(64) std::atomic<std::uint32_t> unended_{0};
};

}  // namespace weir::cpu
