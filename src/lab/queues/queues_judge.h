// Which queue count is best for which stream count, by the samples of a sweep's points. Runs nothing.
#pragma once

#include "base/json.h"

namespace weir {

// Fills in what follows from the points' samples: summaries, each one's ratio to the best of its stream count and size
// with interval and verdict, and the best of each. Slower is only what is clear by test and interval, is more than 2 %,
// and in no process was as fast as the best in any.
void judge_points(Json& sweep);

}  // namespace weir
