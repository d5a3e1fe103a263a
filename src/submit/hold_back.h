// Decides which commands may be submitted. A command is held back until it has arrived and everything it depends on was
// submitted: waiting for an event that was never recorded is a no-op on GPUs, so a dependant that came first would run
// too early. Commands may arrive in any order. Knows no channel and no session; allocates nothing after construction.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "channel/system.h"
#include "device/device.h"

namespace weir {

// Divided among submitters: stream s belongs to submitter s % submitters. Each submitter makes the calls for its own
// part, on one thread at a time; parts release each other's commands by themselves.
class HoldBack {
 public:
  HoldBack(const Step& step, const Placement& placement, int submitters);

  // One submitter's commands.
  class Part {
   public:
    std::size_t command_count() const noexcept { return order_.size(); }
    bool is_done() const noexcept { return submitted_ == order_.size(); }

    // Call before an iteration; all parts of the previous one must be done.
    void begin() noexcept { ready_ = submitted_ = 0; }
    void arrive(CommandId id) noexcept {
      if (all_->drop(id)) add(id);
    }
    // Takes over commands that other parts have released since the last call.
    void take_released() noexcept;
    // The next commands to submit, in an order that is safe as one batch; empty if none is ready. A batch ends with a
    // command that another part waits for: call submitted() before taking more.
    std::span<const CommandId> next() noexcept;
    void submitted() noexcept;

   private:
    friend HoldBack;
    void add(CommandId id) noexcept;

    HoldBack* all_ = nullptr;
    std::vector<CommandId> order_;  // in the order of becoming ready; its size is the number of this part's commands
    std::size_t ready_ = 0;         // number of ready commands in order_
    std::size_t submitted_ = 0;     // of these
    std::size_t given_ = 0;         // returned by next(), not yet confirmed
    static constexpr std::uint32_t kNone = UINT32_MAX;
    alignas(kApart) std::atomic<std::uint32_t> released_{kNone};  // a stack through Node::next, pushed by other parts
  };
  Part& part(int submitter) noexcept { return parts_[static_cast<std::size_t>(submitter)]; }

 private:
  struct Node {
    std::uint32_t pending;  // its own arrival, plus predecessors not yet submitted
    std::uint32_t initial;  // value of pending at the beginning of an iteration
    std::uint32_t first;    // index of its first successor: those of its own part, then those of others
    std::uint32_t own, others;
    std::uint32_t part;
    std::uint32_t next;  // released before this one, in the same part
  };

  // Removes one reason to hold `id` back; returns true if it was the last.
  bool drop(CommandId id) noexcept;
  void release(CommandId id) noexcept;

  std::vector<Node> nodes_;  // by command
  std::vector<CommandId> successors_;
  std::vector<Part> parts_;
};

// Commands of other streams that must be submitted before `id`, and the previous one on its own stream: predecessors
// that are not implied by others. With several ranks also the previous collective of a collective: all ranks must give
// their collectives to the device in the same order, or ranks could wait for each other for ever.
std::vector<std::vector<CommandId>> submit_predecessors(const Step& step, const Placement& placement);

}  // namespace weir
