#include "lab/kernels/package/device_kernel.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace weir::package {

DeviceKernel::DeviceKernel(std::shared_ptr<const HostPart> part, const Case& wanted, std::string how,
                           std::string device_name, bool launches_itself)
    : part_(std::move(part)),
      how_(std::move(how)),
      device_name_(std::move(device_name)),
      launches_itself_(launches_itself),
      host_case_(*part_, wanted, 1) {}

std::string DeviceKernel::where() const { return fmt::format("{} on {}", part_->name(), device_name_); }

void DeviceKernel::write_initial(std::size_t buffer) { write(buffer, host_case_.initial(buffer)); }

Checked DeviceKernel::check() {
  enter();
  run_first();
  for (std::size_t i = 0; i < host_case_.buffer_count(); ++i)
    if (host_case_.buffer(i).role != WEIR_INPUT) write_initial(i);
  report(call_runs(1));
  std::vector<std::vector<std::byte>> after(host_case_.buffer_count());
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (host_case_.buffer(i).role == WEIR_SCRATCH) continue;
    after[i].resize(host_case_.bytes(i));
    // Read in the kernel's own stream: this does not wait for launches elsewhere, so their outputs still show the
    // poison.
    read(i, after[i]);
  }
  return host_case_.compare(after);
}

void DeviceKernel::report(int failed) {
  if (const std::string trouble = launches().take_trouble(); !trouble.empty()) fail(trouble);
  if (failed != 0) part_->fail_with("run", failed);
  const std::uint64_t launched = launches().count() - launched_before_;
  if (launches_itself_ || launched >= runs_) return;
  const std::string what = runs_ == 1 ? "run() launched no function of the device source"
                                      : fmt::format("{} calls of run() launched {} functions", runs_, launched);
  fail(fmt::format("{} ran nothing on {}: {}", part_->name(), device_name_, what),
       "run() must call stream->launch() each time where stream->backend is not WEIR_CPU.");
}

void DeviceKernel::run_first() {
  if (has_run_) return;
  report(call_runs(1));
  wait();
  if (!launches_itself_) launches_per_run_ = launches().count();
  has_run_ = true;
  after_first_run();
}

}  // namespace weir::package
