#include "device/cpu/graph.h"

namespace weir::cpu {

Graph::Graph(const StepPlan& plan, CommandId begin, CommandId end)
    : edges_(record_graph(plan, begin, end)),
      missing_(std::make_unique<std::atomic<std::uint32_t>[]>(edges_.count)),
      ready_(std::make_unique<std::atomic<CommandId>[]>(edges_.count)) {
  for (std::uint32_t id = 0; id < edges_.count; ++id) {
    // Relaxed: no other thread sees the graph yet.
    missing_[id].store(edges_.predecessor_count[id], std::memory_order_relaxed);
    ready_[id].store(kNone, std::memory_order_relaxed);
  }
}

void Graph::start() noexcept {
  is_running_ = true;
  head_ = 0;
  // Relaxed: workers learn of this launch from blocks that are published after it.
  tail_.store(0, std::memory_order_relaxed);
  unended_.store(edges_.count, std::memory_order_relaxed);
  for (const CommandId root : edges_.roots) make_ready(root);
}

void Graph::make_ready(CommandId command) noexcept {
  const std::uint32_t position = tail_.fetch_add(1, std::memory_order_relaxed);
  ready_[position].store(command, std::memory_order_release);  // pairs with the acquire in ready()
}

void Graph::end(CommandId command) noexcept {
  const std::uint32_t own = command - edges_.begin;
  for (std::uint32_t i = edges_.successor_begin[own]; i < edges_.successor_begin[own + 1]; ++i) {
    const CommandId next = edges_.successors[i];
    const std::uint32_t index = next - edges_.begin;
    // Releases this command's writes, acquires those of the other predecessors: pairs with itself.
    if (missing_[index].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    missing_[index].store(edges_.predecessor_count[index], std::memory_order_relaxed);  // for the next launch
    make_ready(next);
  }
  unended_.fetch_sub(1, std::memory_order_acq_rel);  // pairs with the acquire in take_end()
}

bool Graph::take_end() noexcept {
  if (unended_.load(std::memory_order_acquire) != 0) return false;  // pairs with the release in end()
  is_running_ = false;
  return true;
}

std::uint64_t Graph::size_bytes() const noexcept {
  return sizeof(*this) + edges_.size_bytes() + 8 * std::uint64_t{edges_.count};
}

}  // namespace weir::cpu
