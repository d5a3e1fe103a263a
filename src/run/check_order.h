// The order in which a check follows a step: what it reads from the device, what it must replay, and where errors
// accumulate. Knows only the step.
#pragma once

#include <cstdint>
#include <vector>

#include "step/step.h"

namespace weir {

// Which buffers a check can read from the device, and which it must replay. A settled buffer has each byte written at
// most once in an iteration, and never after it was read: at the end the device holds what every command read or wrote.
// So a command between settled buffers is checked separately: the reference is applied to the device's own inputs, and
// errors do not accumulate from one to the next; a close decision (an arg-max, a top-k) is judged on the values that
// the device decided on.
std::vector<bool> chained_buffers(const Step& step);

// Where the check finds the input of a collective, which it needs from every rank.
enum class CollectiveInput : std::uint8_t {
  device,    // on the device: it was not written since
  initial,   // the initial contents: it was not written before
  replayed,  // written before and after: only the replay has it, and ranks exchange it on the way
};

// By command; only meaningful for collectives.
std::vector<CollectiveInput> collective_inputs(const Step& step, const std::vector<bool>& is_chained);

// Commands connected by chained buffers, in order; a single command if it touches none. Groups are checked in parallel
// on all cores. Collectives that only the replay can follow are all in one group, so that ranks meet there in order.
std::vector<std::vector<CommandId>> check_groups(const Step& step, const std::vector<bool>& is_chained,
                                                 const std::vector<CollectiveInput>& inputs);

// Where the device still has a part of what a command wrote into a chained buffer: a copy took it from there into a
// settled buffer before it was overwritten. With this a large product is verified, although its own buffer has changed.
struct KeptCopy {
  std::uint64_t at_bytes;  // within the written operand
  BufferId buffer;
  std::uint64_t offset_bytes, size_bytes;
};

// Kept copies of all bytes of a written operand, in order; empty if some were not copied.
std::vector<KeptCopy> kept_copies(const Step& step, const std::vector<bool>& is_chained, CommandId id,
                                  std::size_t operand);

// The error that each command may add, plus what it inherits through chained buffers, where errors accumulate.
std::vector<double> check_tolerances(const Step& step, const std::vector<bool>& is_chained);

}  // namespace weir
