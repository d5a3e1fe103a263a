// A device whose commands pass a scheduler's gate. Each command does where the device knows what has ended; where it
// does not, an iteration is one command to the gate, and the next one waits for it. Knows no daemon and no socket.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "submit/sched/gate.h"

namespace weir {

class GatedSession;

// All that passes one gate.
class GatedWork {
 public:
  // The gate must outlive it.
  explicit GatedWork(scheduler::Gate& gate) : gate_(gate) {}
  GatedWork(const GatedWork&) = delete;
  GatedWork& operator=(const GatedWork&) = delete;

  scheduler::Gate& gate() noexcept { return gate_; }
  // Finds out what has ended, and tells the gate. Any thread; has to be called again and again while commands are
  // pending.
  void look() noexcept;

 private:
  friend GatedSession;
  scheduler::Gate& gate_;
  std::mutex mutex_;
  std::vector<GatedSession*> sessions_;
};

// Hands everything on to `device`; what its sessions are given waits at the gate before.
std::unique_ptr<Device> gated_device(std::unique_ptr<Device> device, std::shared_ptr<GatedWork> work);

}  // namespace weir
