// Workloads from YAML files: docs/yaml.md describes the format. Knows the catalogue; never touches a device.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/yaml.h"
#include "step/workload/workload.h"

namespace weir {

// What a file may ask for: beyond it a message, instead of a machine without memory.
struct YamlLimits {
  YamlBounds document;
  std::size_t buffers = 10'000;
  std::size_t commands = 1'000'000;              // after loops
  std::size_t iterations = 4'000'000;            // of all loops together
  std::size_t overlaps = 32'000'000;             // pairs of a command and a separately used range that it touches
  std::uint64_t bytes = std::uint64_t{1} << 46;  // of all buffers together; devices have their own opinion
};

// The file's workload. Rejects by file, line and key what it does not understand; sizes are only known to build().
Workload load_workload(const std::filesystem::path& file, const YamlLimits& limits = {});
// The same of text that came from `name`.
Workload parse_workload(std::string_view text, const std::string& name, const YamlLimits& limits = {});
// One of this program's own: it may have the name of one, and has no source that a result would have to carry.
Workload parse_own_workload(std::string_view text, const std::string& name);

}  // namespace weir
