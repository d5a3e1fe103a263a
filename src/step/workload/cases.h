// Built-in workloads that are written as YAML: config/cases, embedded by the build (cmake/cases.cmake).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "step/workload/workload.h"

namespace weir {

struct EmbeddedCase {
  std::string_view name, text;
};

std::span<const EmbeddedCase> embedded_cases();

// All of them, ready to run. Throws if one cannot be read; a test reads them all.
std::vector<Workload> case_workloads();

}  // namespace weir
