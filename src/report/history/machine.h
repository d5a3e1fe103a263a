// Which results were taken under the same conditions: the facts that make two numbers incomparable, and their
// fingerprint. Facts that may explain a change (kernel, compiler, version of Weir) are not among them: they annotate.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "run/load.h"

namespace weir::history {

struct Machine {
  std::string id;                            // 12 hexadecimal digits of the facts: same facts, same id
  std::string label;                         // "NVIDIA H200, cuda:0"
  std::map<std::string, std::string> facts;  // "device.driver", "environment.cpus", "environment.variables.NAME", ...
};

Machine machine_of(const ResultPoint& point);

// FNV-1a of 128 bits, as 32 hexadecimal digits. Tells contents apart; guards against nobody.
std::string digest_of(std::string_view text);

}  // namespace weir::history
