// What this machine offers to kernel packages: which backends exist, why others do not, and the facts that skip
// conditions may use. The search opens drivers, so it belongs in a child process per backend.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "lab/kernels/package/package.h"

namespace weir::bench {

// {"is_present", "reason", "name", "model", "driver", "memory_bytes", "multiprocessors", "precisions"}
Json find_backend_facts(package::Backend backend, int device);
// The same for a backend that could not even be searched for.
Json absent_backend(const std::string& reason);
// python3 and the versions of the libraries that kernels use, as it says: {"version", "program", "libraries": {"numpy":
// "1.26.4" or null, ...}}; null where there is none.
Json find_python();
// As find_backend_facts(), for PyTorch and JAX.
Json framework_facts(const Json& python, package::Backend backend);

// "Facts" below means: {"machine": {"architecture", "cores", "cpu_model", "memory_bytes"}, "backends": {"cuda": as
// above, ...}, "python": as above}
Json put_together(const Json& backends, const Json& python);

// Why a backend cannot be used here; empty where it can.
std::optional<std::string> absence_of(const Json& facts, package::Backend backend);

package::Facts condition_facts(const Json& facts, package::Backend backend, Precision precision);

// Why bench.yaml skips this case; empty where it does not. Rejects a condition that cannot be evaluated.
std::optional<std::string> skip_reason(const package::Package& package, package::Backend backend, Precision precision,
                                       const Json& facts);

}  // namespace weir::bench
