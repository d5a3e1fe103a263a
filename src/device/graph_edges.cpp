#include "device/graph_edges.h"

#include <algorithm>
#include <numeric>

namespace weir {
namespace {

constexpr CommandId kNone = UINT32_MAX;

// A CommandQueue that records what each launch would have to wait for.
class Recorder {
 public:
  Recorder(const StepPlan& plan, CommandId begin, std::uint32_t count)
      : last_(static_cast<std::size_t>(plan.stream_count), kNone),
        waits_(static_cast<std::size_t>(plan.stream_count)),
        recorded_(plan.event_count, kNone),
        begin_(begin),
        predecessors(count) {}

  void launch(CommandId command, StreamId stream) noexcept {
    auto& before = waits_[stream];
    if (last_[stream] != kNone) before.push_back(last_[stream]);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    predecessors[command - begin_] = before;
    before.clear();
    last_[stream] = command;
  }
  void record(EventId event, StreamId stream) noexcept { recorded_[event] = last_[stream]; }
  void wait(EventId event, StreamId stream) noexcept {
    if (recorded_[event] != kNone) waits_[stream].push_back(recorded_[event]);
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

GraphEdges record_graph(const StepPlan& plan, CommandId begin, CommandId end) {
  GraphEdges edges;
  edges.begin = begin;
  edges.count = end - begin;
  edges.successor_begin.assign(edges.count + 1, 0);
  edges.predecessor_count.assign(edges.count, 0);
  std::vector<CommandId> all(edges.count);
  std::iota(all.begin(), all.end(), begin);
  Recorder recorder(plan, begin, edges.count);
  walk(plan, all, recorder);

  for (std::uint32_t id = 0; id < edges.count; ++id) {
    edges.predecessor_count[id] = static_cast<std::uint32_t>(recorder.predecessors[id].size());
    if (edges.predecessor_count[id] == 0) edges.roots.push_back(begin + id);
    for (const CommandId before : recorder.predecessors[id]) ++edges.successor_begin[before - begin + 1];
  }
  std::partial_sum(edges.successor_begin.begin(), edges.successor_begin.end(), edges.successor_begin.begin());
  edges.successors.resize(edges.successor_begin.back());
  std::vector<std::uint32_t> next(edges.successor_begin.begin(), edges.successor_begin.end() - 1);
  for (std::uint32_t id = 0; id < edges.count; ++id)
    for (const CommandId before : recorder.predecessors[id]) edges.successors[next[before - begin]++] = begin + id;
  return edges;
}

}  // namespace weir
