// A document of `weir preempt` (weir.preempt/1) for people. Knows the document, no experiment.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

std::string preempt_text(const Json& document);  // at most 80 columns
std::string preempt_markdown(const Json& document);

}  // namespace weir
