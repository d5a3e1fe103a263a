// In which order a check can follow a step: what it takes from the device as it is, what it must replay, and which
// errors add up on the way. Knows the step alone.
#pragma once

#include <cstdint>
#include <vector>

#include "step/step.h"

namespace weir {

// Which buffers a check can take from the device as they are, and which it must replay. A settled buffer has each byte
// written at most once in an iteration, and never after it was read: what the device holds at the end is what every
// command read or wrote. So a command between settled buffers is checked by itself: the reference is applied to the
// device's own inputs, and errors do not add up from one to the next; a decision that was close (an arg-max, a top-k)
// is judged on the values that the device decided on.
std::vector<bool> chained_buffers(const Step& step);

// Where the check finds what a collective read, which it needs of every rank.
enum class CollectiveInput : std::uint8_t {
  device,    // as the device holds it: nobody has written there since
  initial,   // as it was before the iteration: nobody had written there yet
  replayed,  // written before and after: only the replay sees it, and ranks then tell each other on the way
};

// By command; of collectives only.
std::vector<CollectiveInput> collective_inputs(const Step& step, const std::vector<bool>& is_chained);

// Commands that are tied by chained buffers, in order; one command alone where it touches none. Groups are checked at
// once, on all cores. Collectives that only the replay can follow are all in one group: ranks meet there in order.
std::vector<std::vector<CommandId>> check_groups(const Step& step, const std::vector<bool>& is_chained,
                                                 const std::vector<CollectiveInput>& inputs);

// What each command may add, plus what it inherits through chained buffers: there errors add up along the data.
std::vector<double> check_tolerances(const Step& step, const std::vector<bool>& is_chained);

}  // namespace weir
