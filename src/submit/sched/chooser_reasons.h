// The words of a chooser's choices, as documents spell them; Chooser::reason() has the sentences.
#pragma once

#include "submit/sched/chooser.h"

namespace weir::scheduler {

const char* name_of(Confine confine);
const char* name_of(Confinable confinable);
const char* name_of(BoundState state);
const char* name_of(Why why);

}  // namespace weir::scheduler
