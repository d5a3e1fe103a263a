// The debugger interface of AMD's kernel driver, as far as it suspends and resumes queues: numbers, structures and one
// interface with two implementations, /dev/kfd and the tests' model of it. Knows no policy: queue_control.h decides who
// may be stopped, and for how long.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weir::kfd {

// In an exception mask: 1 << (code - 1). A queue stays new until a debugger lists it, and a new queue is not suspended.
inline constexpr std::uint64_t kQueueNew = std::uint64_t{1} << 30;
// Marks in the array of ids when a call returns.
inline constexpr std::uint32_t kQueueFailed = 1u << 30;   // the hardware did not release it
inline constexpr std::uint32_t kQueueInvalid = 1u << 31;  // not a queue of the process, new, or being destroyed
inline constexpr std::uint32_t kQueueIdBits = kQueueFailed - 1;
inline constexpr std::size_t kMaxQueues = 1024;  // of one process (KFD_MAX_NUM_OF_QUEUES_PER_PROCESS)

// Whether the target's runtime has registered with the driver; before that the hardware is not touched.
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

// The queues that run kernels.
std::vector<std::uint32_t> compute_ids(std::span<const QueueSnapshot> queues);

struct InterfaceVersion {
  std::uint32_t major = 0, minor = 0;
  // Interface 1.13 introduced these calls.
  bool has_debug_trap() const noexcept { return major == 1 && minor >= 13; }
};

// Calls return what the driver returns: a count or 0, or a negative errno. Suspend and resume work only on the thread
// that attached, because the driver treats that thread as the debugger.
class DebugTrap {
 public:
  virtual ~DebugTrap() = default;
  virtual int version(InterfaceVersion* version) noexcept = 0;
  virtual int own_pid() const noexcept = 0;

  // Makes the calling thread the tracer of another process, which keeps running.
  virtual int attach(int pid) noexcept = 0;
  // -EAGAIN: it is still attached, and this must be called again. Takes some 10 ms at most.
  virtual int detach(int pid) noexcept = 0;
  // Passes on signals that stopped it, as each call about its queues does; every few milliseconds while it is attached.
  // False once it has ended.
  virtual bool attend(int pid) noexcept = 0;
  // Registers this process's runtime. Must precede enable(): afterwards the driver would wait for the debugger, which
  // is this same process. EBUSY: already registered. EEXIST: queues exist, so it is too late.
  virtual int runtime_enable() noexcept = 0;
  virtual int runtime_disable() noexcept = 0;

  virtual int enable(int pid, std::uint64_t exception_mask, RuntimeState* state) noexcept = 0;
  // Also resumes every queue of the target. May be called from any thread, attached or not, and from a signal handler.
  virtual int disable(int pid) noexcept = 0;
  // Returns the number of suspended queues, and marks the ids of the others. `grace_period` in 1000 GPU clocks.
  virtual int suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t exception_mask,
                             std::uint32_t grace_period) noexcept = 0;
  // The same for resuming. May be called from a signal handler.
  virtual int resume_queues(int pid, std::span<std::uint32_t> ids) noexcept = 0;
  // Fills `queues` from the front and returns the total number; clears the exceptions of the mask in all of them.
  virtual int queue_snapshot(int pid, std::uint64_t exception_mask, std::span<QueueSnapshot> queues) noexcept = 0;
  // CLOCK_MONOTONIC, or the model's.
  virtual std::int64_t now_ns() noexcept = 0;
};

// Whether the trap from open_debug_trap() ever issues this number on /dev/kfd. Forks of the driver use 0x86 to 0x88 for
// other calls that destroy state (reset of waves, preemption of a queue, a profiler's lock), so only listed numbers are
// issued.
bool may_issue(unsigned long request) noexcept;

// Opens /dev/kfd. Null with a reason if it does not exist or cannot be used.
std::unique_ptr<DebugTrap> open_debug_trap(std::string* reason);

}  // namespace weir::kfd
