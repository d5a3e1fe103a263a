// How variables of the environment are recorded. Exact names: a prefix would also catch what somebody else keeps there
// (NVIDIA_API_KEY, SLURM_JWT).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir {

inline constexpr std::string_view kNotRecorded = "(not recorded)";

// Nothing if the variable does not belong to a GPU runtime, BLAS, MPI or threads (affects_measurement()); its value if
// its exact name is on the list; otherwise only that it was set (kNotRecorded). Values of names that look like secrets
// never are (base/secrets.h).
std::optional<std::string> recorded_variable(std::string_view name, std::string_view value);

}  // namespace weir
