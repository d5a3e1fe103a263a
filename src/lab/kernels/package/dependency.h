// Finds what a package needs on the machine, as far as its files show, and whether the dependencies in bench.yaml are
// installed. Reads the beginnings of files; opens no library and runs nothing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lab/kernels/package/package.h"

namespace weir::package {

// Up to `most` bytes. Rejects anything that is no file or cannot be read.
std::string file_beginning(const std::filesystem::path& file, std::size_t most);

// The program that starts an executable ("python3" of "#!/usr/bin/env python3"). Empty for a binary; rejects a file
// that has no #! line and is no binary.
std::string interpreter_of(const std::filesystem::path& executable);

// The modules that a Python source imports, by the first part of their names, each once.
std::vector<std::string> python_imports(std::string_view text);

// From bench.yaml, the forms of the parts, and the first 16 KiB of each source. A file that cannot be read adds
// nothing.
std::vector<Dependency> dependencies_of(const Package& package);

// Dependencies in bench.yaml that are missing: programs are searched in `program_path` (PATH), libraries (lib*.so*) in
// `library_path` (LD_LIBRARY_PATH), the loader's cache and its usual folders.
std::vector<std::string> missing_dependencies(const Config& config, std::string_view program_path,
                                              std::string_view library_path);

}  // namespace weir::package
