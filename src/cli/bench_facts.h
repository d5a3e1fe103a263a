// What this machine offers to kernel packages: which backends are here and why others are not, and the facts that
// skip conditions may ask for. The search opens drivers, so it belongs into a child process for each backend.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "lab/kernels/package/package.h"

namespace weir::cli {

// {"is_present", "reason", "name", "model", "driver", "memory_bytes", "multiprocessors", "precisions"}
Json find_backend_facts(package::Backend backend, int device);
// The same for one that could not even be looked for.
Json absent_backend(const std::string& reason);

// "Facts" in what follows: {"machine": {"architecture", "cores", "cpu_model", "memory_bytes"}, "backends": {"cuda":
// as above, ...}}
Json put_together(const Json& backends);

// Why a backend cannot be used here; nothing where it can.
std::optional<std::string> absence_of(const Json& facts, package::Backend backend);

package::Facts condition_facts(const Json& facts, package::Backend backend, Precision precision);

// Why bench.yaml has this case skipped; nothing where it has not. Rejects a condition that cannot be answered.
std::optional<std::string> skip_reason(const package::Package& package, package::Backend backend, Precision precision,
                                       const Json& facts);

}  // namespace weir::cli
