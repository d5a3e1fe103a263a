// The list of mechanisms, weakest first. To add one, add a file beside this one and its name below.
#include "lab/preempt/list.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/options.h"

namespace weir::preempt {

std::span<const Mechanism> mechanisms() {
  static const std::array kMechanisms = {
      mechanism_list::none(),              //
      mechanism_list::queues(),            //
      mechanism_list::priority(),          //
      mechanism_list::time_slice(),        //
      mechanism_list::partition(),         //
      mechanism_list::launch_gate(),       //
      mechanism_list::cooperative_flag(),  //
      mechanism_list::kfd_suspend(),       //
  };
  return kMechanisms;
}

const Mechanism& mechanism_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Mechanism& each : mechanisms()) {
    if (each.name == name) return each;
    names.emplace_back(each.name);
  }
  reject(fmt::format("there is no mechanism '{}'", name), suggestion(name, names));
}

}  // namespace weir::preempt
