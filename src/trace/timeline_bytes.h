// A timeline as bytes and back, for processes of one build to hand theirs to each other. Not a file format: the layout
// may change with every version, and another version's bytes are rejected.
#pragma once

#include <string>
#include <string_view>

#include "measure/timeline.h"

namespace weir {

// Everything that a timeline holds.
std::string timeline_bytes(const Timeline& timeline);

// Fails (Error) on what timeline_bytes() did not write: truncated, longer, of another version, numbers that name a
// span, stream, device, call, process or name which is not there. `from` says whose they are, for the message.
Timeline timeline_of_bytes(std::string_view bytes, const std::string& from);

}  // namespace weir
