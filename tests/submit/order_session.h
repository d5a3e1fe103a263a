// A session that notes the order of arrival, and steps whose commands depend on each other at random.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "device/device.h"
#include "kernel/chain.h"
#include "kernel/random.h"

namespace weir {

// A command that comes before one of its predecessors is an error, as on a real device where its wait would be a no-op;
// so is one that comes before another of its stream, which streams in order and events that imply each other rely on.
class OrderSession final : public Session {
 public:
  OrderSession(const Step& step, const Placement& placement)
      : step_(step), before_(step.commands().size(), kNobody), arrived_(step.commands().size()) {
    std::vector<CommandId> last(static_cast<std::size_t>(placement.stream_count), kNobody);
    for (CommandId id = 0; id < before_.size(); ++id) before_[id] = std::exchange(last[placement.stream_of[id]], id);
    for (auto& flag : arrived_) flag.store(0);
  }
  void begin_iteration() noexcept override { ++iteration_; }
  void submit(std::span<const CommandId> commands) noexcept override {
    for (const CommandId id : commands) {
      for (const CommandId before : step_.predecessors(id))
        if (arrived_[before].load(std::memory_order_acquire) != iteration_) too_early_.fetch_add(1);
      if (before_[id] != kNobody && arrived_[before_[id]].load(std::memory_order_acquire) != iteration_)
        out_of_order_.fetch_add(1);
      if (arrived_[id].exchange(iteration_, std::memory_order_release) == iteration_) repeated_.fetch_add(1);
    }
  }
  void finish() override {}
  std::optional<std::uint64_t> ended(StreamId) noexcept override { return kAllEnded; }
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override { return {}; }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override {}
  MemoryUse memory() const override { return {}; }

  bool all_arrived() const {
    for (const auto& flag : arrived_)
      if (flag.load() != iteration_) return false;
    return true;
  }
  int too_early() const { return too_early_.load(); }
  int out_of_order() const { return out_of_order_.load(); }
  int repeated() const { return repeated_.load(); }

 private:
  static constexpr CommandId kNobody = UINT32_MAX;
  const Step& step_;
  std::vector<CommandId> before_;  // on its stream
  std::vector<std::atomic<int>> arrived_;
  std::atomic<int> too_early_{0}, out_of_order_{0}, repeated_{0};
  int iteration_ = 0;
};

inline Step random_step(std::uint64_t seed, int streams, int commands = 120) {
  StepBuilder builder(seed);
  std::uint64_t draw = 0;
  const auto next = [&](std::uint64_t below) { return random_bits(seed, draw++) % below; };
  std::vector<BufferId> buffers;
  for (int i = 0; i < 6; ++i) buffers.push_back(builder.uniform(ElementType::f32, 4));
  for (int i = 0; i < commands; ++i) {
    const auto stream =
        static_cast<StreamId>(i < streams ? i : static_cast<int>(next(static_cast<std::uint64_t>(streams))));
    builder.launch("chain", {.stream = stream}, {.dims = {4, chain_ops({ChainOp::abs})}, .scalars = {}},
                   {{buffers[next(6)]}, {buffers[next(6)]}});
  }
  return std::move(builder).seal(streams);
}

}  // namespace weir
