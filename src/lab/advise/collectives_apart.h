// The same program with its collectives on streams of their own: only those commands come after a collective that wait
// for it by an event, and calls of the host that wait for its stream. Changes a model; runs nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lab/advise/replay_model.h"

namespace weir::advise {

struct CollectivesApart {
  std::shared_ptr<const ReplayModel> model;  // commands and actions have the numbers that they had; null: none moved
  std::size_t moved = 0;
  std::size_t kept = 0;  // a later command of their stream may read their results
};

// `is_collective`: by command. Those of one stream stay in order, as communicators have them.
CollectivesApart collectives_apart(const ReplayModel& model, const std::vector<bool>& is_collective);

}  // namespace weir::advise
