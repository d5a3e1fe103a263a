// What stands out in a weir.analysis/1 document: the largest losses, each with its figure and what to do about it.
// Reads the document alone; what it leaves out is in the sections.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace weir {

struct Standout {
  double share = 0;    // of the device's span; 0 where the cost is not known
  std::string text;    // a sentence
  std::string advice;  // one or more; empty where there is nothing to do
};

// At most five, the largest share of a device's span first; of each kind the device that it costs most. Never empty
// where there is a device with times.
std::vector<Standout> standouts(const Json& document);
// The same as plain text, advice after it.
std::vector<std::string> findings(const Json& document);

}  // namespace weir
