#include "report/page/list.h"

namespace weir::page {

std::vector<Section> sections() {
  using namespace section_list;
  return {
      {"weir.comparison/1", comparison},  // with pictures, then text only
      {"weir.analysis/1", analysis},     {"weir.bench/1", bench},           {"weir.overlap/1", overlap},
      {"weir.preempt/1", preempt},       {"weir.profile/1", profile},       {"weir.queues/1", queues},
      {"weir.amd_capture/1", text},      {"weir.amd_compare/1", text},      {"weir.amd_ftrace/1", text},
      {"weir.amd_hqd/1", text},          {"weir.amd_join/1", text},         {"weir.amd_log/1", text},
      {"weir.channel/1", text},          {"weir.conformance/1", text},      {"weir.overlap_tune/1", text},
      {"weir.sched_status/1", text},     {"weir.trace_comparison/1", text},
  };
}

}  // namespace weir::page
