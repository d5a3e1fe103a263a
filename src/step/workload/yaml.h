// Workloads from YAML files: docs/yaml.md describes the format. Knows the catalogue; never touches a device.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/yaml.h"
#include "step/workload/workload.h"

namespace weir {

// Limits for a file: beyond them it gets an error message instead of exhausting memory.
struct YamlLimits {
  YamlBounds document;
  std::size_t buffers = 10'000;
  std::size_t commands = 1'000'000;              // after loops
  std::size_t iterations = 4'000'000;            // of all loops together
  std::size_t overlaps = 32'000'000;             // pairs of a command and a separately used range that it touches
  std::uint64_t bytes = std::uint64_t{1} << 46;  // of all buffers together; devices have limits of their own
};

// The workload in a file. Rejects unknown content by file, line and key; sizes are known only in build().
Workload load_workload(const std::filesystem::path& file, const YamlLimits& limits = {});
// The same for text that came from `name`.
Workload parse_workload(std::string_view text, const std::string& name, const YamlLimits& limits = {});
// A built-in workload: its name may be a built-in one, and a result need not carry its source.
Workload parse_own_workload(std::string_view text, const std::string& name);

}  // namespace weir
