// A step's commands resolved for OpenCL: one record each, with a kernel object whose arguments are set, so that a
// launch is one call. Knows no event of the plan.
#pragma once

#include "device/opencl/blas.h"
#include "device/opencl/host.h"

#if WEIR_HAVE_OPENCL
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "step/step.h"

namespace weir {

struct alignas(64) OpenclRecord {
  enum class Kind : std::uint8_t { kernel, gemm, to_device, to_host, on_device, host };
  Kind kind = Kind::kernel;
  cl_command_queue queue = nullptr;
  cl_kernel kernel = nullptr;
  std::size_t global = 1, local = 1;
  // For copies. `from` and `to` are null if the device cannot reach that side.
  cl_mem from = nullptr, to = nullptr;
  std::size_t from_offset = 0, to_offset = 0, bytes = 0;
  std::byte* host = nullptr;  // the side in host memory
  std::size_t gemm = 0;
};

class OpenclCommands {
 public:
  // `blas` null: Weir's own kernels multiply matrices. `hosts` is null if there are no host commands.
  OpenclCommands(OpenclContext& context, const Step& step, const Placement& placement, const OpenclBuffers& buffers,
                 std::span<const cl_command_queue> queues, const OpenclBlas* blas, OpenclHostCalls* hosts);

  const OpenclRecord& record(CommandId id) const noexcept { return records_[id]; }
  void prefetch(CommandId id) const noexcept { __builtin_prefetch(&records_[id]); }

  // `begin` and `end` may be null. `begin` gets an event only if `end` does not show when the command started: that of
  // a marker before it.
  int launch(CommandId id, cl_uint wait_count, const cl_event* waits, cl_event* begin, cl_event* end) const noexcept {
    const OpenclRecord& r = records_[id];
    if (r.kind == OpenclRecord::Kind::kernel) [[likely]]
      return enqueue_kernel_(r.queue, r.kernel, 1, nullptr, &r.global, &r.local, wait_count,
                             wait_count == 0 ? nullptr : waits, end);
    return launch_other(id, wait_count, wait_count == 0 ? nullptr : waits, begin, end);
  }
  bool begins_by_marker(CommandId id) const noexcept {
    return records_[id].kind == OpenclRecord::Kind::gemm || records_[id].kind == OpenclRecord::Kind::host;
  }

  // Runs the step in order up to its last new kind of command, so that drivers compile outside of samples. Kernels that
  // wait or spin end at once. Overwrites buffers.
  void warm_up(cl_command_queue queue);
  // What became of the step's regions; empty if it has none.
  const std::optional<Compilation>& compilation() const noexcept { return compilation_; }
  // Describes a result of launch().
  std::string describe(int result) const;

 private:
  int launch_other(CommandId id, cl_uint wait_count, const cl_event* waits, cl_event* begin,
                   cl_event* end) const noexcept;
  void resolve_kernel(CommandId id, const OpenclBuffers& buffers);
  void resolve_gemm(CommandId id, const OpenclBuffers& buffers);
  void resolve_copy(CommandId id, const OpenclBuffers& buffers);
  OpenclKernelOwner make_kernel(CommandId id, const OpenclBuffers& buffers, const KernelShape& shape);

  OpenclContext& context_;
  const OpenclApi& api_;
  decltype(OpenclApi::enqueue_kernel) enqueue_kernel_;
  const Step& step_;
  const OpenclBuffers& buffers_;
  const OpenclBlas* blas_;
  OpenclHostCalls* hosts_;
  std::vector<OpenclRecord> records_;  // by command
  std::vector<OpenclGemm> gemms_;
  std::vector<OpenclKernelOwner> kernels_;
  std::set<std::pair<std::int64_t, ElementType>> regions_;  // that are counted
  std::optional<Compilation> compilation_;
};

}  // namespace weir
#endif
