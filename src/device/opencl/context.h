// One OpenCL device with its context: facts, queues, programs built on first use, and how it shares host memory. Knows
// kernels; no step and no stream.
#pragma once

#include "device/opencl/api.h"

#if WEIR_HAVE_OPENCL
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "device/device.h"

namespace weir {

// Constant facts about one device.
struct OpenclFacts {
  std::string model, platform, platform_version, driver_version;
  bool is_gpu = false, is_cpu = false;
  int version = 12;  // 10 * major + minor
  int compute_units = 0;
  std::uint64_t memory_bytes = 0, largest_buffer_bytes = 0;
  cl_device_svm_capabilities svm = 0;
  std::string extensions;              // " a b c "
  cl_uint command_buffer_version = 0;  // as CL_MAKE_VERSION; 0: no command buffers
  cl_bitfield command_buffer_capabilities = 0;
  cl_bitfield command_buffer_queue_properties = 0;  // required of a queue

  bool offers(std::string_view extension) const;
};

// How kernels and the host share memory.
enum class OpenclSharing : std::uint8_t { none, fine_svm, mapped };

// Arguments of every kernel besides its operands; the prelude of the device code has the same layout.
struct OpenclArguments {
  std::uint64_t offsets[kMaxOperands];  // bytes
  std::int64_t dims[kMaxDims];
  float scalars[kMaxScalars];
};
static_assert(sizeof(OpenclArguments) == 96);

class OpenclContext {
 public:
  // Creates the context; throws if the platform cannot.
  OpenclContext(const OpenclApi& api, cl_platform_id platform, cl_device_id device, OpenclFacts facts);

  const OpenclApi& api() const noexcept { return api_; }
  const OpenclFacts& facts() const noexcept { return facts_; }
  cl_platform_id platform() const noexcept { return platform_; }
  cl_device_id device() const noexcept { return device_; }
  cl_context get() const noexcept { return context_.get(); }
  const std::string& name() const noexcept { return name_; }
  void set_index(std::size_t index) { name_ = "opencl:" + std::to_string(index); }

  // `properties`: see CL_QUEUE_PROPERTIES; `priority`: see Command::priority, used if the device supports hints.
  OpenclQueueOwner make_queue(cl_command_queue_properties properties, int priority = 0) const;
  OpenclMemoryOwner make_buffer(cl_mem_flags flags, std::size_t bytes, void* host = nullptr) const;

  // Compiles a source; null with the driver's log if it fails.
  OpenclProgramOwner try_build(const std::string& source, const std::string& options, cl_int* result,
                               std::string* log) const;
  // A kernel of the catalogue with its own arguments. Compiles it on first use, and throws with the compiler's log. May
  // be called from any thread.
  OpenclKernelOwner make_kernel(std::string_view kernel, ElementType type);
  // The kernel of a region, with a program from this context, from the user's cache, or from the driver's compiler just
  // now. `done`, if given, counts which. Throws with the compiler's log.
  OpenclKernelOwner make_region(const KernelShape& shape, Compilation* done);
  // The largest power of two up to `wanted` that the kernel supports as work-group size.
  std::size_t work_group(cl_kernel kernel, unsigned wanted) const;

  // Whether kernels can read a clock. Compiles one on the first call.
  const Capability& kernel_clock();
  // How host memory is shared with running kernels, found by a trial on the first call; with a reason if it is not.
  OpenclSharing sharing(std::string* reason = nullptr);

 private:
  OpenclProgramOwner build(const std::string& source, const std::string& options, std::string_view what) const;
  std::string build_options(ElementType type) const;
  OpenclProgramOwner program_of_binary(const std::string& binary, const std::string& options) const;
  std::string binary_of(cl_program program) const;

  const OpenclApi& api_;
  cl_platform_id platform_;
  cl_device_id device_;
  OpenclFacts facts_;
  std::string name_ = "opencl";
  OpenclContextOwner context_;
  std::mutex mutex_;  // for everything initialised on first use
  std::map<std::pair<std::string, ElementType>, OpenclProgramOwner> programs_;
  std::optional<Capability> kernel_clock_;
  std::optional<std::pair<OpenclSharing, std::string>> sharing_;
};

}  // namespace weir
#endif
