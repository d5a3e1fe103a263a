// A model of the driver's debugger interface: its preconditions in its order, queues and what becomes of them, the bits
// it sets, what a suspend does to other programs on the GPU, and time as a parameter. Any call can be made to fail.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "amd/kfd/debug_trap.h"

namespace weir::testing {

class FakeKfd final : public kfd::DebugTrap {
 public:
  enum class QueueState : std::uint8_t { fresh, active, suspended, destroyed };
  struct Queue {
    std::uint32_t gpu_id = 1;
    std::uint32_t type = 2;
    QueueState state = QueueState::fresh;
    bool is_stuck = false;            // the hardware does not let go of it
    bool is_being_destroyed = false;  // its owner waits for its resumption
    int remapped = 0;                 // how often it was taken off the hardware and put back for others
  };
  struct Process {
    kfd::RuntimeState runtime = kfd::RuntimeState::enabled;
    bool may_be_traced = true;
    bool is_sampled = false;  // PC sampling is active
    bool is_traced = false, is_enabled = false;
    std::map<std::uint32_t, Queue> queues;
  };
  // How a call that is to fail does: before it has done anything, or after it has done everything.
  enum class Failing : std::uint8_t { before, after };

  // Settings.
  kfd::InterfaceVersion interface{1, 17};
  int sched_policy = 0;
  bool is_mes = false;  // queues are scheduled one by one: others notice nothing
  std::int64_t suspend_ns = 450'000, resume_ns = 350'000, other_ns = 10'000;
  int self = 100;
  int fail_call = -1;  // counted from 0
  int fail_error = 5;
  Failing failing = Failing::before;
  int miscount = 0;  // added to what suspend says
  std::map<int, Process> processes;

  // State for tests.
  std::int64_t clock_ns = 0;
  int calls = 0;
  std::vector<std::string> log;   // "suspend 200: 1 2"
  std::size_t suspended() const;  // queues, of everybody
  // False: the owner waits until it is resumed.
  bool destroy_queue(int pid, std::uint32_t id);

  int version(kfd::InterfaceVersion* version) noexcept override;
  int own_pid() const noexcept override { return self; }
  int attach(int pid) noexcept override;
  int detach(int pid) noexcept override;
  bool attend(int pid) noexcept override { return processes.contains(pid); }
  int runtime_enable() noexcept override;
  int runtime_disable() noexcept override;
  int enable(int pid, std::uint64_t exception_mask, kfd::RuntimeState* state) noexcept override;
  int disable(int pid) noexcept override;
  int suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t exception_mask,
                     std::uint32_t grace_period) noexcept override;
  int resume_queues(int pid, std::span<std::uint32_t> ids) noexcept override;
  int queue_snapshot(int pid, std::uint64_t exception_mask, std::span<kfd::QueueSnapshot> queues) noexcept override;
  std::int64_t now_ns() noexcept override { return clock_ns; }

 private:
  template <class Body>
  int call(const char* name, int pid, std::int64_t takes_ns, std::span<const std::uint32_t> ids, Body&& body);
  // The driver's order of refusals; null with a negative errno where one of them holds.
  Process* admitted(int pid, bool is_enable, bool is_disable, bool touches_hardware, int* error);
  void remap_others(std::uint32_t gpu_id, const Queue* meant);
  void resume(Queue& queue);
};

}  // namespace weir::testing
