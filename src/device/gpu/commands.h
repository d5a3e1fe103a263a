// A step's commands resolved for a GPU: one record each, so that a launch is one table call. Knows no event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/gpu/blas.h"
#include "device/gpu/comms.h"
#include "device/gpu/context.h"
#include "device/gpu/fp8_products.h"
#include "device/gpu/memory.h"
#include "device/gpu/staging.h"
#include "device/host_threads.h"
#include "step/step.h"

namespace weir {

// Two cache lines with everything that a kernel launch needs; the first is enough for ElementArguments.
struct alignas(64) LaunchRecord {
  GpuFunction function = nullptr;  // null: see `other`
  GpuStream stream = nullptr;
  std::uint32_t grid = 1, block = 1;
  std::uint64_t other = 0;
  union {
    KernelArguments arguments{};
    ElementArguments lean;  // for functions that take ElementArguments
  };
};
static_assert(sizeof(LaunchRecord) == 128 && offsetof(LaunchRecord, lean) + sizeof(ElementArguments) == 64);

class GpuCommands {
 public:
  // `threads` runs the host commands, `staged` carries collectives that `comms` cannot; null if there are none.
  GpuCommands(PrimaryContext& context, const Step& step, const Placement& placement, const GpuBuffers& buffers,
              std::span<const GpuStream> streams, const StreamBlas& blas, const StreamComms& comms,
              StagedCollectives* staged, HostThreads* threads);

  const LaunchRecord* records() const noexcept { return records_.data(); }
  // Launches copies, matrix products, host functions and collectives: everything but Weir's own kernels.
  int launch_other(const LaunchRecord& record) const noexcept;
  // Runs every kind of matrix product once, so that the library loads its code outside of samples. Overwrites outputs.
  void warm_up() const;
  // Keeps the kernels that the library launches for each product, so that later launches skip the library's decisions:
  // about half of a call's host time. Products that are not a plain chain of kernels stay with the library.
  void record_products();

  // How many kernels and copies of a command a profiler sees; empty if a library decides that.
  std::optional<std::uint32_t> activity_count(CommandId id) const noexcept;
  bool is_copy(CommandId id) const noexcept;
  // How much of the device one launch takes; for a recorded product, its largest kernel.
  std::optional<Footprint> footprint(CommandId id) const noexcept;

  // What became of the step's regions; empty if it has none.
  const std::optional<Compilation>& compilation() const noexcept { return compilation_; }

  // Host commands keep the times of their last `kept` runs from now on. Call while nothing runs.
  void note_host_runs(std::size_t kept);
  // Null if it is not a host command. The driver's thread writes its runs.
  const HostBody* host_body(CommandId id) const noexcept;

  // Describes a result of launch_other(). These offsets keep results of other libraries apart from the driver's.
  static constexpr int kBlasOffset = 1'000'000;
  static constexpr int kCollectiveOffset = 2'000'000;
  std::string describe(int result) const;

 private:
  struct Other {
    enum class Kind : std::uint8_t {
      gemm,
      fp8,
      recorded,
      sequence,
      to_device,
      to_host,
      on_device,
      any,
      host,
      collective,
      staged
    };
    Kind kind = Kind::any;
    GpuBlasHandle handle = nullptr;
    GpuGemm gemm{};
    GpuPointer from = 0, to = 0;
    std::uint64_t bytes = 0;
    std::size_t host_call = 0;
    std::size_t fp8_product = 0;
    std::size_t first_kernel = 0, kernel_count = 0;  // of a product (0 if not known), or of a sequence
    GpuComm comm = nullptr;
    GpuCollective collective{};
    CommandId command = 0;  // for a staged collective
  };
  // Passed to the driver's callback.
  struct HostCall : GpuHostCall {
    HostThreads* threads = nullptr;
    HostBody host;
  };
  Other copy_of(const Step& step, CommandId id, const GpuBuffers& buffers) const;
  Other gemm_of(const Step& step, CommandId id, const GpuBuffers& buffers, GpuBlasHandle handle, GpuStream stream);
  Other sequence_of(const Step& step, CommandId id, const GpuBuffers& buffers);
  Other collective_of(const Step& step, CommandId id, const GpuBuffers& buffers, const StreamComms& comms,
                      StreamId stream) const;
  Other host_of(const Step& step, CommandId id, const GpuBuffers& buffers, HostThreads* threads);

  PrimaryContext& context_;
  const GpuBlas* blas_;
  const GpuCollectives* collectives_;
  StagedCollectives* staged_;
  std::vector<LaunchRecord> records_;  // by command
  std::vector<Other> others_;
  std::vector<GpuGraphOwner> recordings_;  // own the memory that recorded kernels point to
  std::vector<GpuRecordedKernel> recorded_;
  std::vector<LaunchRecord> sequences_;  // the kernels of regions that are not compiled
  std::optional<Compilation> compilation_;
  Fp8Products fp8_;
  std::vector<HostCall> host_calls_;  // does not move once everything is resolved
};

}  // namespace weir
