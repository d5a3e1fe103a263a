// Events that AMD's kernel driver tells of a GPU: when it took a process's queues off the hardware, and when it put
// them back. Knows the lines and how to ask for them; queues that a debugger suspends are not among them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/text.h"

namespace weir::kfd {

// Why queues were evicted.
enum class EvictionTrigger : std::uint8_t {
  svm = 0,
  userptr = 1,
  ttm = 2,
  suspend = 3,
  criu_checkpoint = 4,
  criu_restore = 5,
  unknown
};
std::string_view name_of(EvictionTrigger trigger);

struct QueueEvent {
  bool is_restore = false;  // else an eviction
  std::int64_t at_ns = 0;   // CLOCK_BOOTTIME, which goes on while the machine sleeps
  int pid = 0;
  std::uint32_t gpu_id = 0;
  EvictionTrigger trigger = EvictionTrigger::unknown;  // of an eviction
  bool is_rescheduled = false;                         // of a restore: it did not succeed, and is tried again
};

// Takes what read() gave, piece by piece; a line may be cut anywhere.
class SmiEvents {
 public:
  void feed(std::string_view bytes);
  // Since the last call.
  std::vector<QueueEvent> take();
  // Events of other kinds, by number; 0 is not one.
  const std::array<std::size_t, 65>& others() const noexcept { return others_; }
  const std::vector<UnreadLines>& unread() const noexcept { return unread_.all(); }

 private:
  void read_line(std::string_view line);

  std::string begun_;  // a line without its end
  bool is_skipping_ = false;
  std::size_t line_ = 0;
  std::vector<QueueEvent> events_;
  std::array<std::size_t, 65> others_{};
  UnreadCounts unread_;
};

// A descriptor to read such lines from, of evictions and restores of this process on a GPU; -1 with a reason where
// there is none. The caller closes it. `of_all`: of all processes, for which CAP_SYS_ADMIN is needed.
int open_smi_events(std::uint32_t gpu_id, bool of_all, std::string* reason);

}  // namespace weir::kfd
