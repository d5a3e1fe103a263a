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
    using namespace workload_list;
    std::vector<Workload> all = {WEIR_WORKLOADS};
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
