#include "trace/kinds.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace weir {
namespace {

bool contains(std::string_view text, std::string_view part) noexcept {
  // Kernel names are long, and find() stops at every occurrence of the first letter.
  return text.size() >= part.size() && memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

const CollectiveName* known_collective(std::string_view letters) {
  static const std::vector<std::string> parts = [] {
    std::vector<std::string> made;
    for (const CollectiveName& name : collective_names()) made.push_back(letters_of(name.part));
    return made;
  }();
  // TorchInductor names its element-wise kernels after the operators around them: triton_poi_fused_add_all_reduce_0.
  for (const std::string_view fused : {"tritonpoi", "tritonred", "tritonper", "tritontem", "tritonfor"})
    if (letters.starts_with(fused)) return nullptr;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (contains(letters, parts[i])) return &collective_names()[i];
  return nullptr;
}

CollectiveKind kind_in(std::string_view text) {
  using enum CollectiveKind;
  // allreduce before reduce, reducescatter before reduce
  if (contains(text, "allreduce")) return all_reduce;
  if (contains(text, "allgather")) return all_gather;
  if (contains(text, "reducescatter")) return reduce_scatter;
  if (contains(text, "alltoall")) return all_to_all;
  if (contains(text, "broadcast")) return broadcast;
  if (contains(text, "sendrecv") || text == "send" || text == "recv") return send_receive;
  if (contains(text, "barrier")) return barrier;
  if (contains(text, "kernelreduce") || text == "reduce") return reduce;
  return unknown;
}

}  // namespace

std::string letters_of(std::string_view name, bool has_digits) {
  std::string letters;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '>' && i > 0 && name[i - 1] == '-') continue;  // "(a->b)"
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth > 0) --depth;
    if (depth > 0) continue;
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (has_digits && c >= '0' && c <= '9')) letters += c;
  }
  return letters;
}

std::span<const CollectiveName> collective_names() {
  using enum CollectiveKind;
  // Names from the sources of these projects, and from profiles that people published. docs/traces.md has the same
  // list.
  static constexpr std::array kNames{
      CollectiveName{"nccl", unknown, "NCCL, RCCL"},  // ncclDevKernel_AllReduce_Sum_f32_RING_LL, ncclSymkDevKernel_...
      CollectiveName{"rccl", unknown, "RCCL"},
      CollectiveName{"msccl", unknown, "RCCL (mscclKernel_Sum_half_Simple_false), MSCCL++"},
      CollectiveName{"oneccl", unknown, "oneCCL"}, CollectiveName{"all_reduce_kernel_nvls", all_reduce, "NVLink SHARP"},
      CollectiveName{"cross_device_reduce", all_reduce, "vLLM, SGLang, aiter: custom all-reduce"},
      CollectiveName{"cross_device_store", reduce_scatter, "aiter"},  // reduce_scatter_cross_device_store
      CollectiveName{"allreduce_prototype", all_reduce, "QuickReduce (vLLM, SGLang, aiter)"},
      // one_shot_all_reduce_kernel, two_shot_all_reduce_kernel_inplace; oneShotAllReduceKernel, twoshotAllreduceKernel
      CollectiveName{"one_shot_all_reduce", all_reduce, "PyTorch's symmetric memory, TensorRT-LLM, FlashInfer"},
      CollectiveName{"two_shot_all_reduce", all_reduce, "PyTorch's symmetric memory, TensorRT-LLM, FlashInfer"},
      CollectiveName{"multimem_all_reduce", all_reduce, "PyTorch's symmetric memory"},
      CollectiveName{"multimem_one_shot", all_reduce, "PyTorch's symmetric memory"},
      CollectiveName{"multimem_all_gather", all_gather, "PyTorch's symmetric memory"},
      CollectiveName{"allreduce_fusion_kernel", all_reduce, "TensorRT-LLM, FlashInfer, aiter"},
      CollectiveName{"moeA2ADispatch", all_to_all, "TensorRT-LLM"},
      CollectiveName{"moeA2ACombine", all_to_all, "TensorRT-LLM"},
      CollectiveName{"moeAllToAll", all_to_all, "TensorRT-LLM"},
      // deep_ep::intranode::dispatch, ::combine, deep_ep::internode_ll::dispatch; deep_ep::layout only counts tokens
      CollectiveName{"deep_ep::intranode", all_to_all, "DeepEP"},
      CollectiveName{"deep_ep::internode", all_to_all, "DeepEP"},
      CollectiveName{"EpDispatchIntraNode", all_to_all, "MORI"},
      CollectiveName{"EpCombineIntraNode", all_to_all, "MORI"},
      CollectiveName{"EpDispatchInterNode", all_to_all, "MORI"},
      CollectiveName{"EpCombineInterNode", all_to_all, "MORI"},
      CollectiveName{"pplx", all_to_all, "pplx-kernels"},  // pplx::dispatchKernel, pplx::combineKernel
      CollectiveName{"nvshmem", unknown, "NVSHMEM"},       // nvshmemi_transfer, nvshmemi_barrier
      CollectiveName{"rocshmem", unknown, "rocSHMEM"},
      CollectiveName{"userbuffers", unknown, "Transformer Engine"},  // kuserbuffers_pushsend, userbuffers_fp16_sum_...
  };
  return kNames;
}

bool is_collective_name(std::string_view name) { return known_collective(letters_of(name)) != nullptr; }

bool looks_like_collective(std::string_view name) {
  const std::string letters = letters_of(name);
  for (const std::string_view part :
       {"allreduce", "allgather", "reducescatter", "alltoall", "sendrecv", "crossdevice", "shmem"})
    if (contains(letters, part)) return true;
  return false;
}

bool matches_pattern(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    const std::size_t star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    const std::size_t at = name.find(part);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + part.size());
    pattern.remove_prefix(std::min(pattern.size(), part.size() + 1));
  }
  return true;
}

SpanKind kernel_kind_of(std::string_view name) {
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
  const std::string letters = letters_of(name);
  const CollectiveKind kind = kind_in(letters);
  const CollectiveName* const known = known_collective(letters);
  return kind == CollectiveKind::unknown && known != nullptr ? known->kind : kind;
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
