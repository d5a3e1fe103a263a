// A document of `weir preempt` (weir.preempt/1) as one standalone SVG picture: latency over the length of the victim's
// blocks, a curve per mechanism, published curves beside. Knows the document, no experiment and no file.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

std::string preempt_svg(const Json& document);

}  // namespace weir
