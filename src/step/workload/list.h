// The workloads: a file each beside this one, and its name here.
#pragma once

#include "step/workload/workload.h"

#define WEIR_WORKLOADS                                                                                       \
  hetero_kernels(), tiny_kernel_stress(), large_gemm_only(), fsdp_tp(), moe(), speculative_decode(),         \
      continuous_batch(), disaggregated_serving(), ranking_transformer(), activation_ckpt(), rag_pipeline(), \
      grad_accum(), graph_subgraphs(), async_dataload(), zero_offload(), torch_compile()

namespace weir::workload_list {
Workload WEIR_WORKLOADS;
}  // namespace weir::workload_list
