#include "step/workload/cases.h"

#include <fmt/format.h>

#include "step/workload/yaml.h"

namespace weir {

std::vector<Workload> case_workloads() {
  std::vector<Workload> cases;
  for (const EmbeddedCase& each : embedded_cases())
    cases.push_back(parse_own_workload(each.text, fmt::format("config/cases/{}.yaml", each.name)));
  return cases;
}

}  // namespace weir
