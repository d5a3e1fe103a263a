// A step on a simulated device: the host's side of virtual time. Submitting threads are replayed one by one, regardless
// of real timing, so that every run gives the same numbers.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/device.h"
#include "device/sim/machine.h"

namespace weir::sim {

// State shared by all sessions of a device: the machine and the host's clock.
struct Shared {
  explicit Shared(const SimProfile& profile) : profile(profile), machine(this->profile) {}
  SimProfile profile;
  Machine machine;
  std::int64_t host_ns = Machine::kStartNs;
};

// progress() stays empty, because it serves a watcher in another thread; here a step that hangs is an error. The
// submitting thread may call ended(), which looks at the host's time without advancing it; relax() advances it.
class SimSession final : public Session {
 public:
  SimSession(std::shared_ptr<Shared> shared, const Step& step, const Placement& placement,
             const SessionOptions& options);
  ~SimSession() override;
  SimSession(const SimSession&) = delete;
  SimSession& operator=(const SimSession&) = delete;

  void begin_iteration() noexcept override;
  void submit(std::span<const CommandId> commands) noexcept override;
  void finish() override;
  std::vector<IterationSpan> take_spans() override;
  Timeline timeline() override;
  void reset() override;
  void read(BufferId buffer, std::span<std::byte> bytes) override;
  MemoryUse memory() const override;
  std::int64_t now_ns() noexcept override;
  void pause(std::int64_t ns) noexcept override;
  std::optional<std::uint64_t> ended(StreamId stream) noexcept override;
  void relax(int spins) noexcept override;
  std::span<std::byte> host_memory(BufferId buffer) override;
  std::optional<Footprint> footprint(CommandId id) const override;

 private:
  // One virtual host thread: its clock and its position in its commands.
  struct HostThread {
    std::vector<CommandId> commands;  // of its streams, in the step's order
    std::size_t next = 0;
    std::uint32_t part = 0;  // of its next command: waits, then the launch, then the record
    std::int64_t ns = 0;
    std::int64_t called_ns = 0;  // when its current call began
    bool is_blocked = false;     // by a full queue
  };
  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };

  void allocate();
  // The packets of each graph, for a device whose graphs pass through queues.
  void divide_graphs();
  void divide(const Placement& placement);
  // Waits, launch and record of one command; false if the queue is full: the next call continues there.
  bool submit_command(CommandId id, HostThread& thread);
  void submit_now(std::span<const CommandId> commands);
  void submit_graphs();
  void replay();
  // Passes the threads' submissions to the machine and advances the machine to the host's time.
  void catch_up();
  bool drain();
  void latch(const char* what) noexcept { failure_ = failure_ == nullptr ? what : failure_; }
  std::int64_t launch_cost(const Work& work) const noexcept;

  std::shared_ptr<Shared> shared_;
  const Step& step_;
  StepPlan plan_;
  SubmitMode mode_;
  Client client_;
  std::vector<std::unique_ptr<std::byte, Free>> memory_;  // by buffer; null for device buffers
  std::uint32_t begun_ = 0;
  std::int64_t looked_ns_ = 0;     // when ended() was last called
  const char* failure_ = nullptr;  // a string of static lifetime

  std::vector<HostThread> threads_;      // empty: only the caller's thread submits
  std::vector<std::uint8_t> is_marked_;  // by command: submitted but not yet replayed
  std::vector<std::int64_t> submitted_ns_;
  std::vector<std::vector<CommandId>> foreign_predecessors_;  // by command: those that another thread submits
  std::atomic<std::uint64_t> arrived_{0};
};

}  // namespace weir::sim
