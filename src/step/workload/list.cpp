#include "step/workload/list.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "step/workload/cases.h"

namespace weir {

std::span<const Workload> workloads() {
  static const std::vector<Workload> kWorkloads = [] {
    std::vector<Workload> all = {
        workload_list::hetero_kernels(),
        workload_list::tiny_kernel_stress(),
        workload_list::large_gemm_only(),
        workload_list::fsdp_tp(),
        workload_list::moe(),
        workload_list::speculative_decode(),
        workload_list::continuous_batch(),
        workload_list::disaggregated_serving(),
        workload_list::ranking_transformer(),
        workload_list::activation_ckpt(),
        workload_list::rag_pipeline(),
        workload_list::grad_accum(),
        workload_list::graph_subgraphs(),
        workload_list::async_dataload(),
        workload_list::zero_offload(),
        workload_list::torch_compile(),
    };
    std::vector<Workload> cases = case_workloads();
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
    return all;
  }();
  return kWorkloads;
}

const Workload& workload_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  reject(fmt::format("there is no workload '{}'", name), suggestion(name, names) + " `weir list` shows them all.");
}

}  // namespace weir
