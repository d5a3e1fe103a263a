// What kernels of packages have in common on every device that runs their source: the first run, which must launch
// something, checked runs, and the choice of the error message. Backends add memory and clocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lab/kernels/package/host_part.h"
#include "lab/kernels/package/launch_site.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::package {

class DeviceKernel : public ReadyKernel {
 public:
  const Work& work() const override { return host_case_.work(); }
  std::string how() const override { return how_; }
  std::string device_name() const override { return device_name_; }
  Checked check() override;
  std::optional<std::uint64_t> launches_per_run() const override { return launches_per_run_; }

 protected:
  // `launches_itself`: a library whose launches the harness does not see.
  DeviceKernel(std::shared_ptr<const HostPart> part, const Case& wanted, std::string how, std::string device_name,
               bool launches_itself);

  virtual void enter() = 0;  // called first in every call: makes the device's context current
  virtual LaunchSite& launches() = 0;
  virtual void wait() = 0;  // for everything in the kernel's own stream
  virtual void write(std::size_t buffer, std::span<const std::byte> bytes) = 0;  // both functions wait
  virtual void read(std::size_t buffer, std::span<std::byte> bytes) = 0;
  virtual void after_first_run() {}

  const HostPart& part() const { return *part_; }
  const HostCase& host_case() const { return host_case_; }
  bool launches_itself() const { return launches_itself_; }
  std::string where() const;  // softmax on cuda:0
  void write_initial(std::size_t buffer);
  // Runs `count` times with nothing in between. Stops at the first failure and returns it for report().
  int call_runs(std::uint64_t count) {
    const auto run = part_->table().run;
    void* const state = host_case_.state();
    WeirStream* const stream = launches().stream();
    launched_before_ = launches().count();
    runs_ = count;
    int failed = 0;
    try {
      for (std::uint64_t i = 0; i < count && failed == 0; ++i) failed = run(state, stream);
    } catch (...) {
      part_->fail_with_exception("run");
    }
    return failed;
  }
  // Throws the failure of call_runs(), with the driver's message before the kernel's, because it is the cause. Runs
  // that launched nothing fail too: their time would be meaningless.
  void report(int failed);
  // The very first run, outside any measurement; later calls do nothing.
  void run_first();

 private:
  std::shared_ptr<const HostPart> part_;
  std::string how_, device_name_;
  bool launches_itself_;
  HostCase host_case_;
  bool has_run_ = false;
  std::uint64_t launched_before_ = 0, runs_ = 0;  // of call_runs()
  std::optional<std::uint64_t> launches_per_run_;
};

}  // namespace weir::package
