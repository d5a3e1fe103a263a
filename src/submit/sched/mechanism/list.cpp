#include "submit/sched/mechanism/list.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"

namespace weir::scheduler {

std::span<const Mechanism> mechanisms() {
  using namespace mechanism_list;
  static const std::array kMechanisms = {WEIR_SCHED_MECHANISMS};
  return kMechanisms;
}

const Mechanism& mechanism_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Mechanism& mechanism : mechanisms()) {
    if (mechanism.name == name) return mechanism;
    names.emplace_back(mechanism.name);
  }
  reject(fmt::format("there is no scheduling mechanism '{}'", name), suggestion(name, names));
}

}  // namespace weir::scheduler
