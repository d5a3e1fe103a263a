// The workloads by name, for list.cpp and for the files that define them.
#pragma once

#include "step/workload/workload.h"

namespace weir::workload_list {

// A step of a class that is made of the parameters.
template <class Builder>
Step build_with(const Params& params, int stream_count) {
  return Builder(params, stream_count).build(stream_count);
}

// Counts are signed where they are computed with.
constexpr std::uint64_t elements(std::int64_t count) { return static_cast<std::uint64_t>(count); }
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Workload hetero_kernels();
Workload tiny_kernel_stress();
Workload large_gemm_only();
Workload fsdp_tp();
Workload moe();
Workload speculative_decode();
Workload continuous_batch();
Workload disaggregated_serving();
Workload ranking_transformer();
Workload activation_ckpt();
Workload rag_pipeline();
Workload grad_accum();
Workload graph_subgraphs();
Workload async_dataload();
Workload zero_offload();
Workload torch_compile();

}  // namespace weir::workload_list
