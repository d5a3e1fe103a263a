// Finds packages below folders. Reads names and bench.yaml; opens and runs nothing. A package that cannot be used is
// found all the same, with its trouble.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lab/kernels/package/package.h"

namespace weir::package {

// Below the working folder, where they exist.
inline constexpr const char* kUsualFolders[] = {"kernels", "src/kernels", "integrations/kernels"};

struct Discovery {
  std::vector<Package> packages;   // by name
  std::vector<std::string> notes;  // folders that could not be read, links that were not followed
};

// Each root is a folder of packages (to 16 levels) or a package itself. Rejects one that is no folder. Hidden folders,
// build, node_modules and __pycache__ are left out; links to folders are noted and not followed.
Discovery discover(std::span<const std::filesystem::path> roots);

// As people type it: relative to the working folder, where it is below that.
std::filesystem::path path_from_here(const std::filesystem::path& path);

// Config of one bench.yaml. Rejects by file, line and key; where the package is given, also keys that would have no
// effect on what it holds (arguments without an executable).
Config parse_config(std::string_view text, const std::string& name, const Package* package = nullptr);

// 1024 rather than 1024.0: sizes are counts mostly, and many languages take 64.0 for no count.
Json plain_number(double value);
// A number alone, or a list of them.
Json plain_numbers(const std::vector<double>& values);
Json json_of(const Problem& problem);

// kernel_manifest.json (weir.kernel_manifest/1): every package with name, path, backend, dependencies, config, and why
// it, or one of its backends, is skipped.
struct Skipped {
  std::string package;
  std::string backend, precision, problem;  // empty: all
  std::string reason, hint;
};
Json manifest_document(const Discovery& discovery, std::span<const Skipped> skipped);

}  // namespace weir::package
