// A step on a simulated device: the host's side of virtual time. Threads that submit are replayed one by one, whatever
// the real ones did, so that every run gives the same numbers.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "device/device.h"
#include "device/sim/machine.h"

namespace weir::sim {

// What all sessions of a device share: the machine, and the host's clock.
struct Shared {
  explicit Shared(const SimProfile& profile) : profile(profile), machine(this->profile) {}
  SimProfile profile;
  Machine machine;
  std::int64_t host_ns = Machine::kStartNs;
};

// Leaves progress() empty, which is for who watches from another thread while nothing happens: here a step that cannot
// go on is an error. Who submits may ask ended(), which is as of the host's time and lets none pass; relax() does.
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
  // One virtual host thread: its clock, and where it is in its commands.
  struct HostThread {
    std::vector<CommandId> commands;  // of its streams, in the step's order
    std::size_t next = 0;
    std::uint32_t part = 0;  // of its next command: waits, then the launch, then the record
    std::int64_t ns = 0;
    std::int64_t called_ns = 0;  // when the call that it is in began
    bool is_blocked = false;     // by a full queue
  };
  struct Free {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };

  void allocate();
  void divide(const Placement& placement);
  // Waits, launch and record of one command; false where the queue is full, and then it goes on from there next time.
  bool submit_command(CommandId id, HostThread& thread);
  void submit_now(std::span<const CommandId> commands);
  void submit_graphs();
  void replay();
  // Brings what threads submitted to the machine, and the machine to the host's time.
  void catch_up();
  bool drain();
  void latch(const char* what) noexcept { failure_ = failure_ == nullptr ? what : failure_; }
  std::int64_t launch_cost(const Work& work) const noexcept;

  std::shared_ptr<Shared> shared_;
  const Step& step_;
  Plan plan_;
  SubmitMode mode_;
  Client client_;
  std::vector<std::unique_ptr<std::byte, Free>> memory_;  // by buffer; none for those on the device
  std::uint32_t begun_ = 0;
  std::int64_t looked_ns_ = 0;     // at what has ended
  const char* failure_ = nullptr;  // text that lives as long as the program

  std::vector<HostThread> threads_;      // none: the caller's thread alone
  std::vector<std::uint8_t> is_marked_;  // by command: submitted by some thread and not yet replayed
  std::vector<std::int64_t> submitted_ns_;
  std::vector<std::vector<CommandId>> foreign_predecessors_;  // by command: those that another thread submits
  std::atomic<std::uint64_t> arrived_{0};
};

}  // namespace weir::sim
