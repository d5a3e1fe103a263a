#include "device/gpu/blas.h"

#include <algorithm>

namespace weir {
namespace {

// 64 streams with 32 MiB each would take 2 GiB; products lose little speed with 16 MiB.
constexpr std::size_t kMaxWorkspace = std::size_t{1} << 30;
constexpr std::size_t kMinWorkspace = std::size_t{4} << 20;

std::vector<bool> streams_with_gemm(const Step& step, const Placement& placement) {
  std::vector<bool> has_gemm(static_cast<std::size_t>(placement.stream_count), false);
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (is_gemm(step.commands()[id])) has_gemm[placement.stream_of[id]] = true;
  return has_gemm;
}

std::size_t bytes_per_stream(const GpuFacts& facts, std::size_t streams) {
  return streams == 0
             ? 0
             : std::clamp(kMaxWorkspace / streams, kMinWorkspace, std::max(kMinWorkspace, facts.blas_workspace_bytes));
}

}  // namespace

bool is_gemm(const Command& command) {
  return command.kind == CommandKind::kernel && kernel(command.kernel).geometry == nullptr;
}

std::size_t StreamBlas::workspace_bytes(const GpuFacts& facts, const Step& step, const Placement& placement) {
  const std::vector<bool> has_gemm = streams_with_gemm(step, placement);
  const auto streams = static_cast<std::size_t>(std::count(has_gemm.begin(), has_gemm.end(), true));
  return streams * bytes_per_stream(facts, streams);
}

StreamBlas::StreamBlas(PrimaryContext& context, const GpuFacts& facts, const Step& step, const Placement& placement,
                       std::span<const GpuStream> streams) {
  const GpuApi& api = context.api();
  const std::vector<bool> has_gemm = streams_with_gemm(step, placement);
  const auto users = static_cast<std::size_t>(std::count(has_gemm.begin(), has_gemm.end(), true));
  handles_.resize(has_gemm.size());
  if (users == 0) return;

  std::string reason;
  blas_ = api.blas(&reason);
  if (blas_ == nullptr)
    fail(fmt::format("{}: this workload multiplies matrices, but {}", context.device_name(), reason),
         "Install the vendor's BLAS library, or add its folder to LD_LIBRARY_PATH.");
  const auto check_blas = [&](int result, std::string_view action) {
    if (result != 0) fail(fmt::format("{}: {} failed: {}", context.device_name(), action, blas_->describe(result)));
  };
  const std::size_t bytes = bytes_per_stream(facts, users);
  for (std::size_t i = 0; i < has_gemm.size(); ++i) {
    if (!has_gemm[i]) continue;
    GpuBlasHandle handle = nullptr;
    check_blas(blas_->create(&handle), "creating a BLAS handle");
    handles_[i] = Handle<GpuBlasHandle, Close>(handle, {blas_});
    check_blas(blas_->set_stream(handle, streams[i]), "giving a BLAS handle its stream");
    if (blas_->set_workspace == nullptr) continue;
    GpuPointer workspace = 0;
    check(api, api.memory_allocate(&workspace, bytes), "allocating a gemm workspace");
    workspaces_.emplace_back(workspace, GpuClose<GpuPointer, &GpuApi::memory_free>{&api});
    check_blas(blas_->set_workspace(handle, workspace, bytes), "giving a BLAS handle its workspace");
  }
}

}  // namespace weir
