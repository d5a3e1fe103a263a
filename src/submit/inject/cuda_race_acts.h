// Does what a plan of `weir race` wants of one command, around the command: delays, waits, joins and hashes. Whatever
// cannot be done is noted and left out. Without the run's mutex; may throw when memory runs out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "submit/inject/cuda_race_streams.h"

namespace weir::inject {

void act_before(RaceThread& thread);
void act_behind(RaceThread& thread, bool has_failed);
// Events of a context that ends are lost.
void forget_race_events();
// Notes the instructions whose commands were never submitted; when the process ends.
void note_what_was_not_reached();

}  // namespace weir::inject
