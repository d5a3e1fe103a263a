#include "page/list.h"

namespace weir::page {

std::vector<Section> sections() {
  using namespace section_list;
  return {
      {"weir.comparison/1", comparison},
      {"weir.amd_capture/1", text},
      {"weir.amd_compare/1", text},
      {"weir.amd_ftrace/1", text},
      {"weir.amd_hqd/1", text},
      {"weir.amd_join/1", text},
      {"weir.amd_log/1", text},
      {"weir.channel/1", text},
      {"weir.conformance/1", text},
      {"weir.overlap_tune/1", text},
      {"weir.profile/1", text},
      {"weir.queues/1", text},
      {"weir.sched_status/1", text},
      {"weir.trace_comparison/1", text},
  };
}

}  // namespace weir::page
