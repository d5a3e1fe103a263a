#include "lab/preempt/list.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/options.h"

namespace weir::preempt {

std::span<const Mechanism> mechanisms() {
  using namespace mechanism_list;
  static const std::array kMechanisms = {WEIR_MECHANISMS};
  return kMechanisms;
}

const Mechanism& mechanism_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Mechanism& each : mechanisms()) {
    if (each.name == name) return each;
    names.emplace_back(each.name);
  }
  reject(fmt::format("unknown mechanism '{}'", name), suggestion(name, names));
}

}  // namespace weir::preempt
