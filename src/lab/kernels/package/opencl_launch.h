// Launches of packages' kernels on OpenCL. Knows no clock and no check.
#pragma once

#include "device/opencl/context.h"

#if WEIR_HAVE_OPENCL
#include "lab/kernels/package/launch_site.h"

namespace weir::package {

class OpenclLaunches final : public LaunchSite {
 public:
  // `program` is null for a library that launches by itself. All three outlive this.
  OpenclLaunches(const OpenclContext& context, cl_program program, cl_command_queue queue, Precision precision,
                 std::vector<void*> buffers, std::string where);

 private:
  struct Function {
    OpenclKernelOwner kernel;
    std::uint32_t argument_count = 0;  // of its first launch: a kernel keeps arguments, so fewer would pass unseen
  };

  int launch(const WeirLaunch& launch) override;

  const OpenclApi& api_;
  cl_program program_;
  cl_command_queue queue_;
  std::vector<Function> functions_;
};

}  // namespace weir::package
#endif
