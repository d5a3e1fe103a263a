// A device whose commands pass a scheduler's gate: each command if the device reports what has ended; otherwise an
// iteration counts as one command, and the next one waits for it. Knows no daemon and no socket.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "submit/sched/gate.h"

namespace weir {

class GatedSession;

// All sessions that pass one gate.
class GatedWork {
 public:
  // The gate must outlive it.
  explicit GatedWork(scheduler::Gate& gate) : gate_(gate) {}
  GatedWork(const GatedWork&) = delete;
  GatedWork& operator=(const GatedWork&) = delete;

  scheduler::Gate& gate() noexcept { return gate_; }
  // Finds out what has ended and reports it to the gate. Any thread; must be called repeatedly while commands are
  // pending.
  void look() noexcept;

 private:
  friend GatedSession;
  scheduler::Gate& gate_;
  std::mutex mutex_;
  std::vector<GatedSession*> sessions_;
};

// Forwards everything to `device`; commands for its sessions first wait at the gate.
std::unique_ptr<Device> gated_device(std::unique_ptr<Device> device, std::shared_ptr<GatedWork> work);

}  // namespace weir
