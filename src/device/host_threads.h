// Host threads that share the blocks of one host function. Knows kernel bodies; knows no stream and no driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kernel/kernel.h"
#include "measure/timeline.h"

namespace weir {

// Threads are parked while there is nothing to do. A call allocates nothing.
class HostThreads {
 public:
  // Half of the cores: the other half submits and feeds the GPU.
  static int default_count() noexcept;

  // `count` threads run blocks, including the caller's.
  explicit HostThreads(int count);
  // Waits for a call that is still running.
  ~HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

  // Runs blocks 0 to `blocks` - 1 and returns when all have ended. Any thread may call it; concurrent calls take turns.
  void run(void (*run_block)(const KernelCall&, std::uint32_t), const KernelCall& call, std::uint32_t blocks) noexcept;

  // The first exception that a body has thrown since the last call, or null.
  std::exception_ptr take_failure() noexcept;

 private:
  // One word holds all that a claim needs, so a late thread takes either an existing block or none:
  // | call 32 | unclaimed blocks 32 |
  static constexpr std::uint32_t unclaimed_in(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
  // Takes and runs one block of the current call; false if none is left. `word` is the value seen last.
  bool run_one(std::uint64_t& word) noexcept;
  void work() noexcept;
  void stop() noexcept;

  std::mutex turn_;  // one call at a time; protects failure_ as well
  std::exception_ptr failure_;

  // State of the current call; written before it is published in word_.
  void (*run_block_)(const KernelCall&, std::uint32_t) = nullptr;
  const KernelCall* call_ = nullptr;
  std::uint32_t blocks_ = 0;
  std::exception_ptr thrown_;
  std::atomic<bool> has_thrown_{false};

  alignas(64) std::atomic<std::uint64_t> word_{0};
  alignas(64) std::atomic<std::uint32_t> unended_{0};  // blocks
  std::atomic<bool> is_stopping_{false};
  std::vector<std::jthread> threads_;  // last: joined before the members that they use are destroyed
};

// What the host runs for a command, and when its latest runs started and ended on the host's clock.
struct HostBody {
  struct Run {
    std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
  };

  HostBody() = default;
  HostBody(const Kernel& body, const KernelShape& shape)
      : run_block(body.run_block), blocks(body.blocks(shape)), call{shape, {}} {}

  void run(HostThreads& threads) noexcept {
    const std::int64_t started_ns = runs.empty() ? 0 : now_ns();
    threads.run(run_block, call, blocks);
    if (!runs.empty()) [[unlikely]]
      runs[run_count++ % runs.size()] = {started_ns, now_ns()};
  }
  // Keeps the times of the last `count` runs from now on.
  void keep_runs(std::size_t count) {
    runs.assign(count, {});
    run_count = 0;
  }
  // The times of a run, counted from 0 since keep_runs(); kNoTime if they are not kept or the run has not ended yet.
  Run run_at(std::uint64_t index) const noexcept {
    return index < run_count && run_count - index <= runs.size() ? runs[index % runs.size()] : Run{};
  }

  void (*run_block)(const KernelCall&, std::uint32_t) = nullptr;
  std::uint32_t blocks = 1;
  KernelCall call;
  std::vector<Run> runs;  // a ring; empty: times are not kept
  std::uint64_t run_count = 0;
};

}  // namespace weir
