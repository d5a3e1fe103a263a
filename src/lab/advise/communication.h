// Questions about collectives: earlier, in fewer pieces, faster.
#pragma once

#include <vector>

#include "lab/advise/what_if.h"

namespace weir::advise {

void ask_about_communication(const ReplayModel& model, const Timeline& timeline, std::vector<WhatIf>& found);

}  // namespace weir::advise
