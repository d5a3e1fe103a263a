#include "submit/sched/list.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace weir::scheduler {

std::span<const Policy> policies() {
  using namespace policy_list;
  static const std::array kPolicies = {WEIR_POLICIES};
  return kPolicies;
}

const Policy& policy_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) {
    if (policy.name == name) return policy;
    names.emplace_back(policy.name);
  }
  reject(fmt::format("there is no scheduling policy '{}'", name), suggestion(name, names));
}

}  // namespace weir::scheduler
