#include "device/cpu_graph.h"

#include <algorithm>
#include <numeric>

namespace weir::cpu {
namespace {

// A CommandQueue that writes down what each launch would have to wait for.
class Recorder {
 public:
  Recorder(const Plan& plan, CommandId begin, std::uint32_t count)
      : last_(static_cast<std::size_t>(plan.stream_count), Graph::kNone),
        waits_(static_cast<std::size_t>(plan.stream_count)),
        recorded_(plan.event_count, Graph::kNone),
        begin_(begin),
        predecessors(count) {}

  void launch(CommandId command, StreamId stream) noexcept {
    auto& before = waits_[stream];
    if (last_[stream] != Graph::kNone) before.push_back(last_[stream]);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    predecessors[command - begin_] = before;
    before.clear();
    last_[stream] = command;
  }
  void record(EventId event, StreamId stream) noexcept { recorded_[event] = last_[stream]; }
  void wait(EventId event, StreamId stream) noexcept {
    if (recorded_[event] != Graph::kNone) waits_[stream].push_back(recorded_[event]);
  }
  void mark_first(StreamId) noexcept {}
  void mark_last(StreamId) noexcept {}

 private:
  std::vector<CommandId> last_;  // by stream
  std::vector<std::vector<CommandId>> waits_;
  std::vector<CommandId> recorded_;  // by event
  CommandId begin_;

 public:
  std::vector<std::vector<CommandId>> predecessors;
};

}  // namespace

Graph::Graph(const Plan& plan, CommandId begin, CommandId end)
    : begin_(begin),
      count_(end - begin),
      successor_begin_(count_ + 1, 0),
      predecessor_count_(count_, 0),
      missing_(std::make_unique<std::atomic<std::uint32_t>[]>(count_)),
      ready_(std::make_unique<std::atomic<CommandId>[]>(count_)) {
  std::vector<CommandId> all(count_);
  std::iota(all.begin(), all.end(), begin);
  Recorder recorder(plan, begin, count_);
  walk(plan, all, recorder);

  for (std::uint32_t id = 0; id < count_; ++id) {
    predecessor_count_[id] = static_cast<std::uint32_t>(recorder.predecessors[id].size());
    if (predecessor_count_[id] == 0) roots_.push_back(begin + id);
    for (const CommandId before : recorder.predecessors[id]) ++successor_begin_[before - begin + 1];
    // Relaxed: nobody else sees the graph yet.
    missing_[id].store(predecessor_count_[id], std::memory_order_relaxed);
    ready_[id].store(kNone, std::memory_order_relaxed);
  }
  std::partial_sum(successor_begin_.begin(), successor_begin_.end(), successor_begin_.begin());
  successors_.resize(successor_begin_.back());
  std::vector<std::uint32_t> next(successor_begin_.begin(), successor_begin_.end() - 1);
  for (std::uint32_t id = 0; id < count_; ++id)
    for (const CommandId before : recorder.predecessors[id]) successors_[next[before - begin]++] = begin + id;
}

void Graph::start() noexcept {
  is_running_ = true;
  head_ = 0;
  // Relaxed: workers learn of this launch from the blocks that are published after it.
  tail_.store(0, std::memory_order_relaxed);
  unended_.store(count_, std::memory_order_relaxed);
  for (const CommandId root : roots_) make_ready(root);
}

void Graph::make_ready(CommandId command) noexcept {
  const std::uint32_t position = tail_.fetch_add(1, std::memory_order_relaxed);
  ready_[position].store(command, std::memory_order_release);  // pairs with the acquire in ready()
}

void Graph::end(CommandId command) noexcept {
  const std::uint32_t own = command - begin_;
  for (std::uint32_t i = successor_begin_[own]; i < successor_begin_[own + 1]; ++i) {
    const CommandId next = successors_[i];
    const std::uint32_t index = next - begin_;
    // Release what we wrote, acquire what the other predecessors wrote: pairs with itself.
    if (missing_[index].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    missing_[index].store(predecessor_count_[index], std::memory_order_relaxed);  // for the next launch
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
  return sizeof(*this) + 4 * (roots_.size() + successors_.size() + successor_begin_.size() + 3 * std::uint64_t{count_});
}

}  // namespace weir::cpu
