// Serialises a timeline for exchange between processes of one build. Not a file format: the layout may change with
// every version, and bytes of another version are rejected.
#pragma once

#include <string>
#include <string_view>

#include "measure/timeline.h"

namespace weir {

// Includes everything that a timeline holds.
std::string timeline_bytes(const Timeline& timeline);

// Throws Error on anything that timeline_bytes() did not write: truncated, too long, of another version, or with
// numbers of spans, streams, devices, calls, processes or names that do not exist. `from` names the sender in the
// message.
Timeline timeline_of_bytes(std::string_view bytes, const std::string& from);

}  // namespace weir
