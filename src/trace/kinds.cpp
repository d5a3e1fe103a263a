#include "trace/kinds.h"

#include <string.h>

#include <array>
#include <string>

namespace weir {
namespace {

bool contains(std::string_view text, std::string_view part) noexcept {
  // Kernel names are long, and find() stops at every occurrence of the first letter.
  return text.size() >= part.size() && memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

std::string lower(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lowered;
}

}  // namespace

bool is_collective_name(std::string_view name) noexcept {
  // ncclDevKernel_AllReduce_Sum_f32_RING_LL(...), ncclKernel_SendRecv_RING...; RCCL uses NCCL's names
  for (const std::string_view part : {"nccl", "rccl", "NCCL", "RCCL", "oneccl", "msccl", "all_reduce_kernel_nvls"})
    if (contains(name, part)) return true;
  return false;
}

SpanKind kernel_kind_of(std::string_view name) noexcept {
  if (is_collective_name(name)) return SpanKind::collective;
  // __amd_rocclr_copyBufferAligned.kd, __amd_rocclr_copyImageToBuffer, __amd_rocclr_fillBufferAligned,
  // __amd_rocclr_fillImage: ROCm's copies and memsets where no copy engine does them, up to ROCm 7 at least.
  constexpr std::string_view kRuntime = "__amd_rocclr_";
  if (!name.starts_with(kRuntime)) return SpanKind::kernel;
  name.remove_prefix(kRuntime.size());
  if (name.starts_with("copy")) return SpanKind::copy;
  // __amd_rocclr_streamOpsWrite, ...Wait, ...Increment, batchMemOp, initHeap, gwsInit set or watch words of memory;
  // only __amd_rocclr_scheduler runs on behalf of a program's kernels.
  return name.starts_with("scheduler") ? SpanKind::kernel : SpanKind::memset;
}

CollectiveKind collective_kind_of(std::string_view name) {
  std::string text;
  for (const char c : lower(name))
    if (c != '_' && c != '-' && c != ' ') text += c;
  // allreduce before reduce, reducescatter before reduce
  if (contains(text, "allreduce")) return CollectiveKind::all_reduce;
  if (contains(text, "allgather")) return CollectiveKind::all_gather;
  if (contains(text, "reducescatter")) return CollectiveKind::reduce_scatter;
  if (contains(text, "alltoall")) return CollectiveKind::all_to_all;
  if (contains(text, "broadcast")) return CollectiveKind::broadcast;
  if (contains(text, "sendrecv") || text == "send" || text == "recv") return CollectiveKind::send_receive;
  if (contains(text, "barrier")) return CollectiveKind::barrier;
  if (contains(text, "kernelreduce") || text == "reduce") return CollectiveKind::reduce;
  return CollectiveKind::unknown;
}

const char* to_string(CollectiveKind kind) noexcept {
  constexpr std::array kNames{"all_reduce", "all_gather",   "reduce_scatter", "all_to_all", "broadcast",
                              "reduce",     "send_receive", "barrier",        "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* to_string(SpanKind kind) noexcept {
  constexpr std::array kNames{"kernel", "collective", "copy", "memset", "host"};
  return kNames[static_cast<std::size_t>(kind)];
}

CallKind call_kind_of(std::string_view name) noexcept {
  // Weir's own devices without a driver: "launch kernel", "launch copy", "wait for all".
  if (name == "launch copy") return CallKind::copy;
  if (name.starts_with("launch ")) return CallKind::launch;
  if (name == "wait for all") return CallKind::synchronize;
  if (!name.starts_with("cu") && !name.starts_with("hip") && !name.starts_with("hsa")) return CallKind::other;
  if (contains(name, "StreamWaitEvent")) return CallKind::wait;
  if (contains(name, "EventRecord")) return CallKind::record;
  if (contains(name, "Synchronize")) return CallKind::synchronize;
  if (contains(name, "Launch")) return CallKind::launch;
  if (contains(name, "Memcpy") || contains(name, "Memset")) return CallKind::copy;
  return CallKind::other;
}

bool waits_for_everything(std::string_view name) noexcept {
  return contains(name, "DeviceSynchronize") || contains(name, "CtxSynchronize");
}

}  // namespace weir
