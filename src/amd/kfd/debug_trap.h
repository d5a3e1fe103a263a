// The debugger's interface of AMD's kernel driver, as far as it stops and starts queues: numbers, structures and one
// interface with two sides, /dev/kfd and the tests' model of it. Knows no policy: who may be stopped, and for how long,
// is for queue_control.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::kfd {

// Of an exception mask: 1 << (code - 1). A queue that nobody has looked at since it was made is new, and not suspended.
inline constexpr std::uint64_t kQueueNew = std::uint64_t{1} << 30;
// In the array of ids, when a call comes back.
inline constexpr std::uint32_t kQueueFailed = 1u << 30;   // the hardware did not let go of it
inline constexpr std::uint32_t kQueueInvalid = 1u << 31;  // none of the process's, new, or being destroyed
inline constexpr std::uint32_t kQueueIdBits = kQueueFailed - 1;
inline constexpr std::size_t kMostQueues = 1024;  // of one process (KFD_MAX_NUM_OF_QUEUES_PER_PROCESS)

// Whether the target's runtime has told the driver that it is there; before that the hardware is not touched.
enum class RuntimeState : std::uint32_t { disabled = 0, enabled = 1, busy = 2, error = 3 };

// One queue of the target, 64 bytes as the driver writes it. Pointers are addresses in the target.
struct QueueSnapshot {
  std::uint64_t exception_status = 0;
  std::uint64_t ring_address = 0;
  std::uint64_t write_pointer_address = 0;
  std::uint64_t read_pointer_address = 0;
  std::uint64_t save_area_address = 0;
  std::uint32_t queue_id = 0;
  std::uint32_t gpu_id = 0;
  std::uint32_t ring_bytes = 0;
  std::uint32_t queue_type = 0;  // of CREATE_QUEUE: 0 PM4, 1 SDMA, 2 AQL, 3 SDMA over XGMI, 4 SDMA by engine
  std::uint32_t save_area_bytes = 0;
  std::uint32_t reserved = 0;
  bool is_compute() const noexcept { return queue_type == 0 || queue_type == 2; }
  bool is_new() const noexcept { return (exception_status & kQueueNew) != 0; }
};
static_assert(sizeof(QueueSnapshot) == 64);

struct InterfaceVersion {
  std::uint32_t major = 0, minor = 0;
  // 1.13 brought these calls.
  bool has_debug_trap() const noexcept { return major == 1 && minor >= 13; }
};

// Calls return what the driver returns: a count or 0, or a negative errno. The ones that stop and start queues work on
// the thread that attached only, for that is whom the driver takes for the debugger.
class DebugTrap {
 public:
  virtual ~DebugTrap() = default;
  virtual int version(InterfaceVersion* version) noexcept = 0;
  virtual int own_pid() const noexcept = 0;

  // Makes the calling thread the tracer of another process; that runs on.
  virtual int attach(int pid) noexcept = 0;
  virtual int detach(int pid) noexcept = 0;
  // Says that this process's runtime is there. Before enable(): afterwards the driver would wait for the debugger,
  // which is the one that waits. EBUSY: somebody has said so already. EEXIST: there are queues, so it is too late.
  virtual int runtime_enable() noexcept = 0;
  virtual int runtime_disable() noexcept = 0;

  virtual int enable(int pid, std::uint64_t exception_mask, RuntimeState* state) noexcept = 0;
  // Resumes every queue of the target as well. Any thread may call it, attached or not; so may a signal handler.
  virtual int disable(int pid) noexcept = 0;
  // Returns how many are suspended, and marks the ids of the others. `grace_period` in 1000 GPU clocks.
  virtual int suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t exception_mask,
                             std::uint32_t grace_period) noexcept = 0;
  // The same for resuming. May be called from a signal handler.
  virtual int resume_queues(int pid, std::span<std::uint32_t> ids) noexcept = 0;
  // Fills `queues` from the front and returns how many there are; clears the exceptions of the mask in all of them.
  virtual int queue_snapshot(int pid, std::uint64_t exception_mask, std::span<QueueSnapshot> queues) noexcept = 0;
  // CLOCK_MONOTONIC, or the model's.
  virtual std::int64_t now_ns() noexcept = 0;
};

// Whether what open_debug_trap() gives ever issues that number on /dev/kfd. Forks of the driver gave 0x86 to 0x88
// meanings that differ and destroy state (reset of waves, preemption of a queue, a profiler's lock), so nothing is
// tried that is not listed.
bool may_issue(unsigned long request) noexcept;

// Opens /dev/kfd. Null with a reason where there is none, or it is not ours to use.
std::unique_ptr<DebugTrap> open_debug_trap(std::string* reason);

}  // namespace weir::kfd
