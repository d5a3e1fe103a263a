// A device's context, retained once: made current in every thread that enters it, with the embedded device code loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "device/gpu/api.h"
#include "device/gpu/error.h"
#include "device/gpu/region_code.h"

namespace weir {

// Shared by a device and its sessions; released with the last of them.
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

  // Makes the context current in the calling thread. Costs one load and one compare if it already is.
  int bind() const noexcept { return bound_ == generation_ ? 0 : bind_slowly(); }
  // The same for cold code.
  void enter() const { check(api_, bind(), "entering " + name_); }

  // The device function of a kernel for an element type: weir_gelu_f16. Loads the device code on the first call.
  GpuFunction function(const std::string& name);

  // Regions compiled for this device. For one thread at a time, like preparing sessions.
  RegionCode& regions() noexcept { return regions_; }

  // Carries clock events, initial contents and reads of all sessions; idle while a step runs. There is one for all
  // sessions: drivers count streams when they assign hardware queues, so one per session would change the mapping that
  // experiments look for. Created on the first call; for one thread at a time, like preparing sessions.
  GpuStream service();

 private:
  int bind_slowly() const noexcept;
  void load_code();

  // The context that this thread has entered last. A number, because the address of a released context may be reused.
  static constinit thread_local std::uint64_t bound_;

  const GpuApi& api_;
  int index_;
  std::string name_;
  GpuContext context_ = nullptr;
  std::uint64_t generation_;
  GpuStreamOwner service_;
  GpuModuleOwner module_;
  std::map<std::string, GpuFunction> functions_;
  RegionCode regions_;
};

}  // namespace weir
