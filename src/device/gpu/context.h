// A device's context, retained once: current in every thread that asks, with the embedded device code loaded into it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "device/gpu/api.h"
#include "device/gpu/error.h"

namespace weir {

// Shared by a device and its sessions; goes with the last of them.
class PrimaryContext {
 public:
  PrimaryContext(const GpuApi& api, int index);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const GpuApi& api() const noexcept { return api_; }
  const std::string& device_name() const noexcept { return name_; }  // cuda:0
  int index() const noexcept { return index_; }
  GpuContext handle() const noexcept { return context_; }

  // Makes the context current in the calling thread. Costs one load and one compare where it already is.
  int bind() const noexcept { return bound_ == generation_ ? 0 : bind_slowly(); }
  // The same in cold code.
  void enter() const { check(api_, bind(), "entering " + name_); }

  // The device function of a kernel for an element type: weir_gelu_f16. Loads the device code on the first call.
  GpuFunction function(const std::string& name);

  // Carries the clocks' events, initial contents and reads of all sessions; idle while a step runs. One for all of
  // them: drivers count streams when they give a new one its hardware queue, so one per session would change the map
  // that experiments look for. Made on the first call; one thread at a time, as sessions are prepared.
  GpuStream service();

 private:
  int bind_slowly() const noexcept;

  // Which context this thread has entered last. Numbers, because a released context's address may be used again.
  static constinit thread_local std::uint64_t bound_;

  const GpuApi& api_;
  int index_;
  std::string name_;
  GpuContext context_ = nullptr;
  std::uint64_t generation_;
  GpuStreamOwner service_;
  GpuModuleOwner module_;
  std::map<std::string, GpuFunction> functions_;
};

}  // namespace weir
