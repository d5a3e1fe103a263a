// Files and programs that a reader has and a clone does not: traces of other tools, captures of AMD machines, a program
// to look at. Knows formats; runs nothing.
#pragma once

#include <filesystem>
#include <string>

namespace weir::testing {

// FOLDER/run1, run2 (captures), snapshot, a.log, b.log (ROCm's), nsys.sqlite, trace.rpd: what setup lines find in
// $SAMPLES.
void write_samples(const std::filesystem::path& folder);

// A copy of the kernel packages whose problems are 64 times smaller where they are large.
void write_small_packages(const std::filesystem::path& from, const std::filesystem::path& to);

void put_program(const std::filesystem::path& path, const std::string& text);

// FOLDER/train, serve, program and the like in Python: they end soon, and use a CUDA GPU where there is one.
void write_programs(const std::filesystem::path& folder);

}  // namespace weir::testing
