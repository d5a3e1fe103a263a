// Events of AMD's kernel driver for a GPU: when it took a process's queues off the hardware, and when it put them back.
// Knows the lines and how to subscribe to them; suspensions by a debugger are not among them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/text.h"
#include "base/descriptor.h"

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
  bool is_restore = false;  // false: an eviction
  std::int64_t at_ns = 0;   // CLOCK_BOOTTIME, which continues while the machine sleeps
  int pid = 0;
  std::uint32_t gpu_id = 0;
  EvictionTrigger trigger = EvictionTrigger::unknown;  // only for an eviction
  bool is_rescheduled = false;                         // only for a restore: it failed and will be retried
};

// Takes the output of read() in pieces; a line may be split anywhere.
class SmiEvents {
 public:
  void feed(std::string_view bytes);
  // Events since the last call.
  std::vector<QueueEvent> take();
  // Counts of other events, by number; 0 is not used.
  const std::array<std::size_t, 65>& others() const noexcept { return others_; }
  const std::vector<UnreadLines>& unread() const noexcept { return unread_.all(); }

 private:
  void read_line(std::string_view line);

  std::string begun_;  // the beginning of an incomplete line
  bool is_skipping_ = false;
  std::size_t line_ = 0;
  std::vector<QueueEvent> events_;
  std::array<std::size_t, 65> others_{};
  UnreadCounts unread_;
};

// Events of all processes on several GPUs, as they arrive. Only root is shown those of others.
class SmiListener {
 public:
  // `folder` is for tests: a file for each GPU ("f7bc") in place of the driver; empty: the driver.
  SmiListener(const std::vector<std::uint32_t>& gpu_ids, const std::string& folder);
  // Whether events of at least one GPU are reported.
  bool is_open() const noexcept { return !sources_.empty(); }
  // Why there are none, or not all.
  const std::string& reason() const noexcept { return reason_; }
  // What arrived since the last call: as events, and in the driver's own text.
  std::vector<QueueEvent> take();
  std::string take_text();

 private:
  struct Source {
    Descriptor file;
    SmiEvents events;
  };
  std::vector<Source> sources_;
  std::string text_, reason_;
};

// Opens a descriptor for such lines: evictions and restores of this process on a GPU; -1 with a reason if there is
// none. The caller closes it. `of_all`: events of all processes, which needs CAP_SYS_ADMIN.
int open_smi_events(std::uint32_t gpu_id, bool of_all, std::string* reason);

}  // namespace weir::kfd
