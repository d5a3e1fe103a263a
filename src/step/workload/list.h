// The workloads by name, for list.cpp and for the files that define them.
#pragma once

#include "step/workload/workload.h"

namespace weir::workload_list {

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
