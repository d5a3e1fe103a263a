// The mechanisms: a file each beside this one, and its name here.
#pragma once

#include <span>
#include <string_view>

#include "submit/sched/mechanism.h"

#define WEIR_SCHED_MECHANISMS gate(), kfd_suspend(), mps_priority(), mps_share(), partition(), time_slice(), automatic()

namespace weir::scheduler {

std::span<const Mechanism> mechanisms();
// Rejects unknown names with a suggestion.
const Mechanism& mechanism_named(std::string_view name);

}  // namespace weir::scheduler

namespace weir::scheduler::mechanism_list {
Mechanism WEIR_SCHED_MECHANISMS;
}  // namespace weir::scheduler::mechanism_list
