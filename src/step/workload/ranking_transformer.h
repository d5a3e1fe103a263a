// What other code may look up in a step of ranking_transformer after an iteration.
#pragma once

#include "step/step.h"

namespace weir {

struct RankingBuffers {
  BufferId loss = 0;  // f32[1]: of the iteration, over all ranks
};

// Found by what the commands do, so it also works on a part of the step that still has them. Rejects any other step.
RankingBuffers ranking_buffers(const Step& step);

}  // namespace weir
