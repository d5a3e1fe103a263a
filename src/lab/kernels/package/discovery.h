// Finds packages below folders. Reads names and bench.yaml; opens and runs nothing. A package that cannot be used is
// still listed, with its trouble.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lab/kernels/package/package.h"

namespace weir::package {

// Searched below the working folder, if they exist: also where QuASIM keeps its kernels.
inline constexpr const char* kUsualFolders[] = {"kernels", "src/kernels", "integrations/kernels", "quasim/kernels",
                                                "autonomous_systems_platform/services/backend/quasim/kernels"};
// The function of a Python module that is a kernel, unless bench.yaml names another.
inline constexpr const char* kUsualFunction = "run_benchmark";

struct Discovery {
  std::vector<Package> packages;   // by name
  std::vector<std::string> notes;  // unreadable folders, and links that were not followed
};

// Each root is a folder of packages (up to 16 levels) or a package itself. Rejects one that is no folder. Hidden
// folders, build, node_modules and __pycache__ are skipped; links to folders are noted and not followed.
Discovery discover(std::span<const std::filesystem::path> roots);

// As people type it: relative to the working folder if it is below that.
std::filesystem::path path_from_here(const std::filesystem::path& path);

// Parses one bench.yaml. Rejects with file, line and key; if the package is given, also rejects keys that would have no
// effect on it (arguments without an executable).
Config parse_config(std::string_view text, const std::string& name, const Package* package = nullptr);

// 1024 rather than 1024.0: sizes are mostly counts, and many languages do not accept 64.0 as one.
Json plain_number(double value);
// A single number, or a list of them.
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
