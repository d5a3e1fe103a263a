// What has to happen when this process ends while queues are suspended: they are resumed, or their owner hangs, because
// destroying a suspended queue waits for its resumption. Covers signals that end the process and exit(). After SIGKILL
// it is left to the driver, which disables the interface when its user's memory goes (upstream kfd_process.c).
#pragma once

#include "amd/kfd/debug_trap.h"

namespace weir::kfd {

// While one of these lives, whatever ends this process resumes the target's queues first. Signals that the program
// handles by itself (SIGINT, SIGTERM and the like) are left to it: then destructors run. A forked child resumes
// nothing.
class ResumeGuard {
 public:
  // Fails where too many are in use. The trap has to outlive it.
  ResumeGuard(DebugTrap& trap, int pid);
  ~ResumeGuard();
  ResumeGuard(const ResumeGuard&) = delete;
  ResumeGuard& operator=(const ResumeGuard&) = delete;

 private:
  int seat_ = -1;
};

}  // namespace weir::kfd
