// A step resolved for the cpu device: memory, bodies and arguments, and the state of its streams and events. Everything
// is allocated here, before anything runs. Knows what a command needs, not when it runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "device/cpu/graph.h"
#include "device/cpu/region_code.h"
#include "device/cpu/times.h"
#include "device/device.h"
#include "device/plan.h"
#include "device/rank/communicator.h"

namespace weir::cpu {

using KernelTable = const Kernel& (*)(KernelId);

// Which threads run a command. Each unit has its own threads, so that no unit waits for another.
enum class Unit : std::uint8_t { workers, copy, host, collective };
inline constexpr std::size_t kUnits = 4;

// Units as bits; workers are not included, because every new packet wakes them anyway.
constexpr std::uint8_t wakes(Unit unit) {
  return unit == Unit::workers ? std::uint8_t{0} : static_cast<std::uint8_t>(1u << static_cast<unsigned>(unit));
}

// A command with all lookups resolved. A copy has no body; its blocks are chunks. A collective is one block, no body.
struct PreparedCommand {
  static constexpr std::uint64_t kChunkBytes = 1 << 20;

  void (*run_block)(const KernelCall&, std::uint32_t) = nullptr;
  RegionFunction region = nullptr;  // of a compiled region
  std::uint32_t blocks = 1;
  bool is_fp8 = false;  // its first block finds the scales that all of its blocks use
  std::uint8_t level = 0;
  Unit unit = Unit::workers;
  StreamId stream = 0;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t size_bytes = 0;  // of `from`
  Collective collective;
  KernelCall call;

  void run(std::uint32_t block) const;
};

// The state of a stream: idle (0), running a command, or running a command with an event to record when it ends.
// | event 30 | instance 32 | records 1 | runs 1 |
class alignas(64) StreamState {
 public:
  static constexpr std::uint64_t kIdle = 0;
  static constexpr std::uint64_t kRuns = 1;
  static constexpr std::uint64_t kRecords = 2;
  static constexpr std::uint64_t recording(EventId event, std::uint32_t instance) {
    return static_cast<std::uint64_t>(event) << 34 | static_cast<std::uint64_t>(instance) << 2 | kRecords | kRuns;
  }
  static constexpr EventId event_in(std::uint64_t word) { return static_cast<EventId>(word >> 34); }
  static constexpr std::uint32_t instance_in(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 2); }

  std::atomic<std::uint64_t> word{kIdle};

  // Counts ended commands for Session::progress(). A stream's commands end one after the other, each before the next
  // one starts, so counting is only a store into a cache line that the worker already has.
  void count_end() noexcept {
    ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // pairs with ended()
  }
  std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_acquire); }  // pairs with count_end()

 private:
  std::atomic<std::uint64_t> ended_{0};
};

// Commands submitted to a stream, on a cache line of its own: the submitting thread writes it, only watchers read it.
struct alignas(64) SubmitCount {
  std::atomic<std::uint64_t> count{0};

  // For one thread at a time.
  void add(std::uint64_t commands) noexcept {
    count.store(count.load(std::memory_order_relaxed) + commands, std::memory_order_relaxed);
  }
};

// Instances count from 1. A wait takes the number of the last record submitted before it; 0 waits for nothing.
struct EventState {
  std::atomic<std::uint32_t> submitted{0};
  std::atomic<std::uint32_t> done{0};

  // Instances wrap, so they are compared by their distance.
  bool is_done(std::uint32_t instance) const noexcept {
    return static_cast<std::int32_t>(done.load(std::memory_order_seq_cst) - instance) >= 0;  // pairs with set_done()
  }
  void set_done(std::uint32_t instance) noexcept {
    done.store(instance, std::memory_order_seq_cst);  // pairs with is_done(); see Engine::drain_wait()
  }
};

// A command that is held up at the head of its queue on purpose. For the thread that drains that queue.
struct HeldCommand {
  CommandId command = 0;
  std::int64_t ns = 0;
  std::optional<std::uint32_t> iteration;
  std::int64_t since_ns = kNoTime;  // while it is held
  bool has_end = false;             // over as soon as the stream has ended so many commands, and as many per iteration
  StreamId until_stream = 0;
  std::uint64_t until_count = 0;
};

struct PreparedStep {
  // `queues` by stream. Rejects a step with collectives if there is no communicator.
  PreparedStep(const Step& step, const Placement& placement, const SessionOptions& options,
               std::vector<std::uint8_t> queues, KernelTable kernel_of, Communicator* communicator,
               std::shared_ptr<RegionCode> region_code);

  void reset();
  std::uint64_t size_bytes() const noexcept;
  // Whether a command that could start must still be held up; and what follows when it does start.
  bool holds(CommandId command, std::uint32_t iteration) noexcept;
  void let_go(CommandId command) noexcept;
  // Keeps the first exception of a body; Session::finish() throws it.
  void latch(std::exception_ptr failure) noexcept {
    if (!has_failed.exchange(true, std::memory_order_acq_rel)) this->failure = std::move(failure);  // pairs with itself
  }

  const Step& step;
  Communicator* communicator;  // may be null without collectives
  std::shared_ptr<RegionCode> region_code;
  StepPlan plan;
  std::vector<PreparedCommand> commands;
  std::vector<Unit> unit_of;                  // by command: submitting reads this instead of the wide records above
  std::vector<std::uint8_t> queue_of_stream;  // the stream map
  std::vector<StreamState> streams;
  std::vector<SubmitCount> submitted;          // by stream
  std::vector<std::uint32_t> stream_commands;  // of one iteration, by stream
  std::vector<EventState> events;
  std::vector<std::unique_ptr<Graph>> graphs;  // by segment; none in eager mode
  std::vector<std::uint32_t> segment_of;       // by command, for graphs
  std::vector<HeldCommand> held;               // few, usually none
  Times times;
  std::optional<Compilation> compilation;  // of its regions, if it has any
  std::uint8_t woken = 0;                  // wakes() of all units that this step uses
  std::atomic<bool> has_failed{false};
  std::exception_ptr failure;  // read when nothing is in flight

  // Packets that were pushed and have not retired; negative while a submit has not yet added packets that workers have
  // already retired. Retiring is a worker's last access to this object: pairs with the load in Session::finish().
  alignas(64) std::atomic<std::int64_t> outstanding{0};

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };
  void resolve(CommandId id, KernelTable kernel_of);
  void compile_regions();
  void hold_up(const Disturbance& disturbance);

  std::vector<std::unique_ptr<std::byte, Free>> memory_;  // by buffer

 public:
  std::span<std::byte> bytes(BufferId buffer) const {
    return {memory_[buffer].get(), static_cast<std::size_t>(step.buffers()[buffer].size_bytes())};
  }
};

}  // namespace weir::cpu
